// The contract of an authorizer: may this user do this? The attributes are those of Kubernetes, so that any authorizer can
// decide: basic-authorizer.ts by group, RBAC by roles. errors.ts has the message of a 403.
import type { UserInfo } from './user.ts'

export type AuthorizationAttributes = ResourceAttributes | NonResourceAttributes

export interface ResourceAttributes {
  user: UserInfo
  /** get, list, watch, create, update, patch, delete, deletecollection, impersonate, …; `*` for all. */
  verb: string
  /** Empty for the core group. */
  group: string
  version: string
  /** The plural; `*` for all. */
  resource: string
  subresource?: string
  name?: string
  /** Absent for cluster scope and for all namespaces. */
  namespace?: string
  path?: undefined
}

export interface NonResourceAttributes {
  user: UserInfo
  /** The HTTP method in lower case. */
  verb: string
  /** Normalized, as the router sees it. */
  path: string
}

/** Not allowed means that no rule allows it: there are no deny rules. `reason` names the rule, if there is one. */
export interface Decision {
  allowed: boolean
  reason?: string
}

export interface Authorizer {
  authorize(attributes: AuthorizationAttributes): Promise<Decision> | Decision
  /** All that the user may do in a namespace, as far as rules can express it. */
  rulesFor?(user: UserInfo, namespace: string): Rules
}

/** The status of a SelfSubjectRulesReview. */
export interface Rules {
  readonly resourceRules: readonly {
    verbs: readonly string[]
    apiGroups: readonly string[]
    resources: readonly string[]
  }[]
  readonly nonResourceRules: readonly { verbs: readonly string[]; nonResourceURLs: readonly string[] }[]
  readonly incomplete: boolean
}
