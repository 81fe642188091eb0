// Authorizes requests by group: masters may send all requests, viewers may read all resources except secrets, authenticated
// users may use discovery and review their own permissions, and all users may get the health and version of the server.
import type { AuthorizationAttributes, Authorizer, Decision, ResourceAttributes, Rules } from './authorize.ts'
import { AUTHENTICATED_GROUP, MASTERS_GROUP, type UserInfo, VIEWERS_GROUP } from './user.ts'

const PUBLIC_PATHS = ['/healthz', '/livez', '/readyz', '/version']
const DISCOVERY_PATHS = ['/api', '/apis', '/openapi']

const READ_VERBS = ['get', 'list', 'watch']
/** Resources that viewers may not read. `*` includes secrets. */
const SECRET_RESOURCES = ['secrets', '*']
/** Subresources for which a GET opens a connection to a running pod. */
const CONNECT_SUBRESOURCES = ['exec', 'attach', 'portforward', 'proxy', '*']

const SELF_REVIEWS = [
  { group: 'authentication.k8s.io', resource: 'selfsubjectreviews' },
  { group: 'authorization.k8s.io', resource: 'selfsubjectaccessreviews' },
  { group: 'authorization.k8s.io', resource: 'selfsubjectrulesreviews' },
]

export function createBasicAuthorizer(): Authorizer {
  return { authorize, rulesFor }
}

/** Lists the rules of `authorize`. Rules cannot express exceptions, so those of viewers are `incomplete`. */
function rulesFor({ groups }: UserInfo): Rules {
  const isMaster = groups.includes(MASTERS_GROUP)
  const isViewer = groups.includes(VIEWERS_GROUP)
  const isAuthenticated = groups.includes(AUTHENTICATED_GROUP)
  const paths = [...PUBLIC_PATHS, ...(isAuthenticated ? DISCOVERY_PATHS : [])].flatMap((path) => [path, `${path}/*`])
  return {
    resourceRules: [
      ...(isMaster ? [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] : []),
      ...(isAuthenticated
        ? SELF_REVIEWS.map(({ group, resource }) => ({ verbs: ['create'], apiGroups: [group], resources: [resource] }))
        : []),
    ],
    nonResourceRules: [
      ...(isMaster ? [{ verbs: ['*'], nonResourceURLs: ['*'] }] : []),
      ...(isViewer ? [{ verbs: ['get'], nonResourceURLs: ['*'] }] : []),
      { verbs: ['get'], nonResourceURLs: paths },
    ],
    incomplete: isViewer,
  }
}

function authorize(attributes: AuthorizationAttributes): Decision {
  const { groups } = attributes.user
  if (groups.includes(MASTERS_GROUP)) return allowedBy(MASTERS_GROUP)
  if (groups.includes(VIEWERS_GROUP) && isViewerRead(attributes)) return allowedBy(VIEWERS_GROUP)
  if (groups.includes(AUTHENTICATED_GROUP) && isDiscoveryOrSelfReview(attributes)) return allowedBy(AUTHENTICATED_GROUP)
  if (isGetBelow(PUBLIC_PATHS, attributes)) return { allowed: true, reason: 'open to everyone' }
  return { allowed: false }
}

const allowedBy = (group: string): Decision => ({ allowed: true, reason: `allowed to the group "${group}"` })

function isViewerRead(attributes: AuthorizationAttributes): boolean {
  if (attributes.path !== undefined) return attributes.verb === 'get'
  return (
    READ_VERBS.includes(attributes.verb) &&
    !SECRET_RESOURCES.includes(attributes.resource) &&
    !CONNECT_SUBRESOURCES.includes(attributes.subresource ?? '')
  )
}

const isDiscoveryOrSelfReview = (attributes: AuthorizationAttributes) =>
  isGetBelow(DISCOVERY_PATHS, attributes) || (attributes.path === undefined && isSelfReview(attributes))

const isSelfReview = ({ verb, group, resource, subresource }: ResourceAttributes) =>
  verb === 'create' &&
  !subresource &&
  SELF_REVIEWS.some((review) => review.group === group && review.resource === resource)

/** Whether the request is a GET of one of the paths or of a path below it. */
const isGetBelow = (paths: readonly string[], { verb, path }: AuthorizationAttributes) =>
  verb === 'get' && path !== undefined && paths.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))
