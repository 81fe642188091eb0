// Authorizes by group only: masters may do everything, viewers may read everything but secrets, authenticated users may
// use discovery and review their own rights, and anonymous users may see the health and version of the server.
import type { AuthorizationAttributes, Authorizer, Decision, ResourceAttributes, Rules } from './authorize.ts'
import { AUTHENTICATED_GROUP, MASTERS_GROUP, type UserInfo, VIEWERS_GROUP } from './user.ts'

const PUBLIC_PATHS = ['/healthz', '/livez', '/readyz', '/version']
const DISCOVERY_PATHS = ['/api', '/apis', '/openapi']

const READ_VERBS = ['get', 'list', 'watch']
/** `*` includes secrets. */
const UNREADABLE_RESOURCES = ['secrets', '*']
/** A GET of these opens a connection into a running pod. */
const CHANNEL_SUBRESOURCES = ['exec', 'attach', 'portforward', 'proxy', '*']

const SELF_REVIEWS = [
  { group: 'authentication.k8s.io', resource: 'selfsubjectreviews' },
  { group: 'authorization.k8s.io', resource: 'selfsubjectaccessreviews' },
  { group: 'authorization.k8s.io', resource: 'selfsubjectrulesreviews' },
]

export function createBasicAuthorizer(): Authorizer {
  return { authorize, rulesFor }
}

/** The rules of `authorize` as a list. A list cannot express exceptions, so that of viewers is `incomplete`. */
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
  if (groups.includes(VIEWERS_GROUP) && isReading(attributes)) return allowedBy(VIEWERS_GROUP)
  if (groups.includes(AUTHENTICATED_GROUP) && isDiscovery(attributes)) return allowedBy(AUTHENTICATED_GROUP)
  if (isGetOf(PUBLIC_PATHS, attributes)) return { allowed: true, reason: 'open to everyone' }
  return { allowed: false }
}

const allowedBy = (group: string): Decision => ({ allowed: true, reason: `allowed to the group "${group}"` })

function isReading(attributes: AuthorizationAttributes): boolean {
  if (attributes.path !== undefined) return attributes.verb === 'get'
  return (
    READ_VERBS.includes(attributes.verb) &&
    !UNREADABLE_RESOURCES.includes(attributes.resource) &&
    !CHANNEL_SUBRESOURCES.includes(attributes.subresource ?? '')
  )
}

const isDiscovery = (attributes: AuthorizationAttributes) =>
  isGetOf(DISCOVERY_PATHS, attributes) || (attributes.path === undefined && isSelfReview(attributes))

const isSelfReview = ({ verb, group, resource, subresource }: ResourceAttributes) =>
  verb === 'create' &&
  !subresource &&
  SELF_REVIEWS.some((review) => review.group === group && review.resource === resource)

/** Each path includes the paths below it. */
const isGetOf = (paths: readonly string[], { verb, path }: AuthorizationAttributes) =>
  verb === 'get' && path !== undefined && paths.some((known) => path === known || path.startsWith(`${known}/`))
