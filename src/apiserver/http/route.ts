// Parses the path of a request into resource, object and verb. Pure; does not know which resources are served.
//   /api/v1/namespaces/shop/persistentvolumeclaims/orders/status
//   /apis/storage.k8s.io/v1/storageclasses

export interface ResourceRequest {
  readonly is: 'resource'
  readonly verb: Verb
  readonly group: string
  readonly version: string
  readonly plural: string
  /** '' for cluster scope and for collections over all namespaces. */
  readonly namespace: string
  /** '' for collections. */
  readonly name: string
  /** '' for the object itself. */
  readonly subresource: string
}
export interface PathRequest {
  readonly is: 'path'
  readonly path: string
  /** The method in lower case, as in authorization rules. */
  readonly verb: string
}
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** Undefined for a path below /api or /apis that cannot belong to any resource. */
export function parseRoute(
  method: string,
  path: string,
  query: URLSearchParams,
): ResourceRequest | PathRequest | undefined {
  const asPath: PathRequest = { is: 'path', path, verb: method.toLowerCase() }
  const parts = path.split('/').slice(1)
  if (parts[parts.length - 1] === '') parts.pop() // a trailing slash is ignored
  let rest: string[]
  let group = ''
  let version: string
  if (parts[0] === 'api' && parts.length > 2) {
    version = parts[1]!
    rest = parts.slice(2)
  } else if (parts[0] === 'apis' && parts.length > 3) {
    group = parts[1]!
    version = parts[2]!
    rest = parts.slice(3)
  } else {
    return asPath
  }
  const decoded = decodeParts(rest)
  if (!decoded) return undefined
  rest = decoded

  let namespace = ''
  // /namespaces/x, /namespaces/x/status and /namespaces/x/finalize address the namespace, not resources in it.
  const isNamespaceItself = rest.length === 3 && (rest[2] === 'status' || rest[2] === 'finalize')
  if (group === '' && rest[0] === 'namespaces' && rest.length > 2 && !isNamespaceItself) {
    namespace = rest[1]!
    rest = rest.slice(2)
  } else if (group !== '' && rest[0] === 'namespaces' && rest.length > 2) {
    namespace = rest[1]!
    rest = rest.slice(2)
  }
  const [plural = '', name = '', subresource = '', ...tooMany] = rest
  if (tooMany.length > 0 || plural === '') return undefined
  const verb = verbOf(method, name, query)
  if (!verb) return asPath
  if (plural === 'namespaces' && group === '' && name) namespace = name
  return { is: 'resource', verb, group, version, plural, namespace, name, subresource }
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (booleanQuery(query, 'watch')) return 'watch'
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

/** `0` and `false` are false; every other value is true, even an empty one. */
export function booleanQuery(query: URLSearchParams, name: string): boolean {
  const value = query.get(name)
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

function decodeParts(parts: string[]): string[] | undefined {
  try {
    return parts.map((part) => (part.includes('%') ? decodeURIComponent(part) : part))
  } catch {
    return undefined
  }
}
