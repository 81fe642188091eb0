// Records which permissions the components of a test file have used, and which they lacked. test/component-rules/ collects
// them over all test files.

export interface RuleUsage {
  /** `COMPONENT: VERB RESOURCE` of each permission that granted a request. */
  readonly used: Set<string>
  /** Each request that no rule granted, in the same form. */
  readonly denied: Set<string>
}

export const ruleUsage: RuleUsage = { used: new Set(), denied: new Set() }
