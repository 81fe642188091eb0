// The question every request must pass: may this user do this? Asked with upstream's attributes,
// so that any authorizer can answer: basic-authorizer.ts by group, RBAC by roles.
// The words of a refusal are forbidden() in errors.ts.
import type { UserInfo } from './user.ts'

export type AuthorizationAttributes = ResourceAttributes | NonResourceAttributes

export interface ResourceAttributes {
  user: UserInfo
  /** get, list, watch, create, update, patch, delete, deletecollection, impersonate, …; `*` asks for all of them. */
  verb: string
  /** Empty for the core group. */
  group: string
  version: string
  /** The plural; `*` asks for all of them. */
  resource: string
  subresource?: string
  name?: string
  /** Absent at the cluster scope, and for every namespace at once. */
  namespace?: string
  path?: undefined
}

export interface NonResourceAttributes {
  user: UserInfo
  /** The HTTP method in lower case. */
  verb: string
  /** The path as the router will read it, already normalized. */
  path: string
}

/** Not allowed means no rule allows it: there are no rules that forbid. `reason` says which rule, where there is one. */
export interface Decision {
  allowed: boolean
  reason?: string
}

export interface Authorizer {
  authorize(attributes: AuthorizationAttributes): Promise<Decision> | Decision
  /** Everything a user may do in a namespace, as far as it can be listed. */
  rulesFor?(user: UserInfo, namespace: string): Rules
}

/** In the shape a SelfSubjectRulesReview answers. */
export interface Rules {
  readonly resourceRules: readonly {
    verbs: readonly string[]
    apiGroups: readonly string[]
    resources: readonly string[]
  }[]
  readonly nonResourceRules: readonly { verbs: readonly string[]; nonResourceURLs: readonly string[] }[]
  readonly incomplete: boolean
}
