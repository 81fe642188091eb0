// The audit policy: which requests are recorded, at which level and stages. Files have the format audit.k8s.io/v1 Policy.
import { FieldErrors } from '../../api/field-errors.ts'
import { boolean, type Infer, list, object, opt, ptr, rawJson, req, string } from '../../api/schema.ts'
import { decodeConfigFile } from '../config-file.ts'

export const AUDIT_API_VERSION = 'audit.k8s.io/v1'

export const LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export type Level = (typeof LEVELS)[number]

export const STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
export type Stage = (typeof STAGES)[number]

const groupResources = object('io.k8s.audit.v1.GroupResources', 'Resources of one API group.', {
  group: opt(0, string, 'API group; empty for the core group, * for all.'),
  resources: opt(0, list(string), 'Resources, such as pods, pods/log, pods/* or */status; empty for all.'),
  resourceNames: opt(0, list(string), 'Names of objects; empty for all.'),
})

const policyRule = object('io.k8s.audit.v1.PolicyRule', 'A rule; the first one that matches a request applies.', {
  level: req(0, string, 'None, Metadata, Request or RequestResponse.'),
  users: opt(0, list(string), 'Authenticated users; empty for all.'),
  userGroups: opt(0, list(string), 'Groups of the user; empty for all.'),
  verbs: opt(0, list(string), 'Verbs; empty for all.'),
  resources: opt(0, list(groupResources), 'Resources; empty for all.'),
  namespaces: opt(0, list(string), 'Namespaces; the empty string stands for cluster scope.'),
  nonResourceURLs: opt(0, list(string), 'Paths that are not resources; a trailing * matches any suffix.'),
  omitStages: opt(0, list(string), 'Stages without an event, in addition to those of the policy.'),
  omitManagedFields: ptr(0, boolean, 'Whether bodies are recorded without managedFields.'),
})

const policy = object('io.k8s.audit.v1.Policy', 'Rules for the audit log.', {
  metadata: opt(0, rawJson, 'Ignored.'),
  rules: req(0, list(policyRule), 'The rules in order; a request without a matching rule is not recorded.'),
  omitStages: opt(0, list(string), 'Stages without an event.'),
  omitManagedFields: opt(0, boolean, 'Whether bodies are recorded without managedFields.'),
})

type PolicyRule = Infer<typeof policyRule>

export interface AuditRule extends Omit<PolicyRule, 'level' | 'omitStages' | 'omitManagedFields'> {
  readonly level: Level
  /** Stages without an event, including those of the policy. */
  readonly omitStages: readonly Stage[]
  readonly omitManagedFields: boolean
}

/** The rules in order. */
export type AuditPolicy = readonly AuditRule[]

/** Parses a policy in YAML or JSON. */
export async function parseAuditPolicy(text: string): Promise<AuditPolicy> {
  const format = { apiVersion: AUDIT_API_VERSION, kind: 'Policy', type: policy }
  const { rules, omitStages = [], omitManagedFields = false } = await decodeConfigFile(text, format)
  if (rules.length === 0) throw new Error('rules: at least one rule is required')
  const errors = new FieldErrors()
  checkStages(omitStages, 'omitStages', errors)
  for (const [index, rule] of rules.entries()) checkRule(rule, `rules[${index}]`, errors)
  if (errors.list.length > 0) {
    throw new Error(errors.list.map(({ field, message }) => `${field}: ${message}`).join(', '))
  }
  return rules.map((rule) => ({
    ...rule,
    level: rule.level as Level,
    omitStages: [...omitStages, ...(rule.omitStages ?? [])] as Stage[],
    omitManagedFields: rule.omitManagedFields ?? omitManagedFields,
  }))
}

function checkRule(rule: PolicyRule, path: string, errors: FieldErrors): void {
  const { level, resources = [], namespaces = [], nonResourceURLs = [], omitStages = [] } = rule
  if (!level) errors.required(`${path}.level`)
  else if (!(LEVELS as readonly string[]).includes(level)) errors.notSupported(`${path}.level`, level, LEVELS)
  for (const [index, url] of nonResourceURLs.entries()) checkUrl(url, `${path}.nonResourceURLs[${index}]`, errors)
  for (const [index, { resources: names = [], resourceNames = [] }] of resources.entries()) {
    if (resourceNames.length > 0 && names.length === 0) {
      const field = `${path}.resources[${index}].resourceNames`
      errors.invalid(field, resourceNames, 'using resourceNames requires at least one resource')
    }
  }
  checkStages(omitStages, `${path}.omitStages`, errors)
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)) {
    const detail = 'rules cannot apply to both regular resources and non-resource URLs'
    errors.invalid(`${path}.nonResourceURLs`, nonResourceURLs, detail)
  }
}

function checkUrl(url: string, path: string, errors: FieldErrors): void {
  if (url === '*') return
  if (!url.startsWith('/')) errors.invalid(path, url, "non-resource URL rules must begin with a '/' character")
  if (url.slice(0, -1).includes('*')) {
    errors.invalid(path, url, "non-resource URL wildcards '*' must be the final character of the rule")
  }
}

function checkStages(stages: readonly string[], path: string, errors: FieldErrors): void {
  for (const [index, stage] of stages.entries()) {
    if ((STAGES as readonly string[]).includes(stage)) continue
    errors.invalid(`${path}[${index}]`, stage, `allowed stages are ${STAGES.join(',')}`)
  }
}
