// Authorizes one request: derives its attributes from the route and calls the authorizer. HTTP requests, the writes of a
// commit and in-process requests all use it, so that the same rule grants the same request everywhere.
import { type FieldRequirement, parseFieldSelector, requiredFieldValue } from '../../api/selectors.ts'
import { ApiError } from '../../api/status-error.ts'
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { AuthorizationAttributes, Authorizer, Decision, ResourceAttributes } from './authorizer.ts'
import { forbidden, type RejectionStatus } from './errors.ts'
import type { UserInfo } from './user.ts'

/** A request before its authorization. */
export interface RequestToAuthorize {
  readonly user: UserInfo
  readonly route: ResourceRequest | PathRequest
  /** The field selector of a list or watch. */
  readonly fieldSelector?: string | null
}

/** Throws 403 if the authorizer denies the request. Passes the decision to `onDecision` first. */
export function authorizeRequest(
  authorizer: Authorizer,
  request: RequestToAuthorize,
  onDecision?: (decision: Decision) => void,
): void {
  const attributes = attributesOf(request)
  const decision = authorizer.authorize(attributes)
  onDecision?.(decision)
  if (!decision.allowed) throw apiErrorOf(forbidden(attributes, decision.reason))
}

export const apiErrorOf = ({ code, reason, message, details }: RejectionStatus): ApiError =>
  new ApiError(code, reason, message, details)

function attributesOf({ user, route, fieldSelector }: RequestToAuthorize): AuthorizationAttributes {
  if (route.is === 'path') return { user, verb: route.verb, path: route.path }
  const { verb, group, version, plural, subresource, name } = route
  const attributes: ResourceAttributes = { user, verb, group, version, resource: plural }
  if (subresource) attributes.subresource = subresource
  const requirements = verb === 'list' || verb === 'watch' ? parseSelector(fieldSelector) : undefined
  if (requirements) attributes.fieldSelector = requirements
  const requestedName = name || (requirements && requiredFieldValue(requirements, 'metadata.name'))
  if (requestedName) attributes.name = requestedName
  // A Namespace counts as an object in the namespace of its name, so that a Role in the namespace can grant access to it.
  const namespace = group === '' && plural === 'namespaces' ? name : route.namespace
  if (namespace) attributes.namespace = namespace
  return attributes
}

/** The fields whose required value affects a decision: rules may name objects, and nodes may list the pods on them. */
const AUTHORIZED_FIELDS = ['metadata.name', 'spec.nodeName']

/** Returns the requirements of a selector if it names an authorized field. */
function parseSelector(selector: string | null | undefined): readonly FieldRequirement[] | undefined {
  if (!selector || !AUTHORIZED_FIELDS.some((field) => selector.includes(field))) return undefined
  try {
    return parseFieldSelector(selector)
  } catch {
    return undefined // the list rejects the selector
  }
}
