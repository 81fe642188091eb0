// Parses the path of a request into resource, object and verb, without checking that the resource is served.
//   /api/v1/namespaces/shop/persistentvolumeclaims/orders/status
//   /apis/storage.k8s.io/v1/storageclasses

export interface ResourceRequest {
  readonly is: 'resource'
  readonly verb: Verb
  readonly group: string
  readonly version: string
  readonly plural: string
  /** The namespace; for a request for a Namespace, its name. Empty for cluster scope and for collections over all namespaces. */
  readonly namespace: string
  /** Empty for collections. */
  readonly name: string
  /** Empty for the object itself. */
  readonly subresource: string
}
export interface PathRequest {
  readonly is: 'path'
  readonly path: string
  /** The method in lower case, as in authorization rules. */
  readonly verb: string
}
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** Returns undefined for a path below /api or /apis that cannot be that of a resource. */
export function parseRoute(
  method: string,
  path: string,
  query: URLSearchParams,
): ResourceRequest | PathRequest | undefined {
  const pathRequest: PathRequest = { is: 'path', path, verb: method.toLowerCase() }
  const pathParts = path.split('/').slice(1)
  if (pathParts[pathParts.length - 1] === '') pathParts.pop() // a trailing slash is ignored
  let segments: string[]
  let group = ''
  let version: string
  if (pathParts[0] === 'api' && pathParts.length > 2) {
    version = pathParts[1]!
    segments = pathParts.slice(2)
  } else if (pathParts[0] === 'apis' && pathParts.length > 3) {
    group = pathParts[1]!
    version = pathParts[2]!
    segments = pathParts.slice(3)
  } else {
    return pathRequest
  }
  const decodedSegments = decodeSegments(segments)
  if (!decodedSegments) return undefined
  segments = decodedSegments

  let namespace = ''
  // /namespaces/x, /namespaces/x/status and /namespaces/x/finalize refer to the namespace, not to resources in it.
  const isNamespaceSubresource = segments.length === 3 && (segments[2] === 'status' || segments[2] === 'finalize')
  if (group === '' && segments[0] === 'namespaces' && segments.length > 2 && !isNamespaceSubresource) {
    namespace = segments[1]!
    segments = segments.slice(2)
  } else if (group !== '' && segments[0] === 'namespaces' && segments.length > 2) {
    namespace = segments[1]!
    segments = segments.slice(2)
  }
  const [plural = '', name = '', subresource = '', ...extraSegments] = segments
  if (extraSegments.length > 0 || plural === '') return undefined
  const verb = verbOf(method, name, query)
  if (!verb) return pathRequest
  if (plural === 'namespaces' && group === '' && name) namespace = name
  return { is: 'resource', verb, group, version, plural, namespace, name, subresource }
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (parseBooleanQuery(query, 'watch')) return 'watch'
      return name ? 'get' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

/** Returns false if the parameter is absent, `0` or `false`, and true for any other value, including an empty one. */
export function parseBooleanQuery(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

function decodeSegments(pathParts: string[]): string[] | undefined {
  try {
    return pathParts.map((segment) => (segment.includes('%') ? decodeURIComponent(segment) : segment))
  } catch {
    return undefined
  }
}
