// The interface of an authorizer, which decides whether a user may perform a request. A request's attributes are those
// of Kubernetes.
import type { FieldRequirement } from '../../api/selectors.ts'
import type { UserInfo } from './user.ts'

export type AuthorizationAttributes = ResourceAttributes | NonResourceAttributes

export interface ResourceAttributes {
  user: UserInfo
  /** The verb, such as get, list, deletecollection or impersonate; `*` for all. */
  verb: string
  /** Empty for the core group. */
  group: string
  version: string
  /** The plural name; `*` for all. */
  resource: string
  subresource?: string
  name?: string
  /** The namespace of the request; for a request for a Namespace, its name. Absent for cluster scope and all namespaces. */
  namespace?: string
  /** The field selector of a list or watch. */
  fieldSelector?: readonly FieldRequirement[]
  path?: undefined
}

interface NonResourceAttributes {
  user: UserInfo
  /** The HTTP method in lower case. */
  verb: string
  /** The path as received, without the query. */
  path: string
}

/** The decision on a request. `reason` explains why it is allowed or denied, if the authorizer has an explanation. */
export interface Decision {
  allowed: boolean
  reason?: string
}

export interface Authorizer {
  /** Synchronous, so that the transaction of a write can check a permission that depends on the stored object. */
  authorize(attributes: AuthorizationAttributes): Decision
  /** Returns the rules that apply to the user in a namespace. */
  rulesFor?(user: UserInfo, namespace: string): Rules
}

/** The status of a SelfSubjectRulesReview. */
export interface Rules {
  readonly resourceRules: readonly {
    verbs: readonly string[]
    apiGroups: readonly string[]
    resources: readonly string[]
    resourceNames?: readonly string[]
  }[]
  readonly nonResourceRules: readonly { verbs: readonly string[]; nonResourceURLs: readonly string[] }[]
  readonly incomplete: boolean
  readonly evaluationError?: string
}
