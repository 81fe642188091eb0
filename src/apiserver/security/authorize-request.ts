// Authorizes one request: derives its attributes from the route and asks the authorizer. HTTP requests, the writes of a
// commit and in-process requests all pass here, so that the same rule grants the same request everywhere.
import { parseFieldSelector, requiredFieldValue } from '../../api/selectors.ts'
import { ApiError } from '../../api/status-error.ts'
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { AuthorizationAttributes, Authorizer, Decision, ResourceAttributes } from './authorize.ts'
import { forbidden, type RejectionStatus } from './errors.ts'
import type { UserInfo } from './user.ts'

/** A request before its authorization. */
export interface RequestToAuthorize {
  readonly user: UserInfo
  readonly route: ResourceRequest | PathRequest
  /** The field selector of a list or watch. */
  readonly fieldSelector?: string | null
}

/** Throws 403 if the authorizer denies the request. Passes the decision to `onDecision` before. */
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
  const requestedName = name || (verb === 'list' || verb === 'watch' ? selectedName(fieldSelector) : '')
  if (requestedName) attributes.name = requestedName
  // A namespace is in itself, so that a role in it can grant access to it.
  const namespace = group === '' && plural === 'namespaces' ? name : route.namespace
  if (namespace) attributes.namespace = namespace
  return attributes
}

/** Returns the name that a list or watch selects with `metadata.name=`, so that rules for this object apply. */
function selectedName(selector: string | null | undefined): string {
  if (!selector?.includes('metadata.name')) return ''
  try {
    return requiredFieldValue(parseFieldSelector(selector), 'metadata.name') ?? ''
  } catch {
    return '' // the list rejects the selector
  }
}
