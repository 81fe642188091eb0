// Decides which requests the console forwards to the API server: those that the page may need, except requests for Secrets,
// credentials and streams into pods, which a hijacked tab could misuse.
import { badRequest } from '../../api/status-error.ts'
import { notForwarded } from '../errors.ts'

/** The first segments of the paths that are forwarded. */
const ROOTS: ReadonlySet<string> = new Set(['api', 'apis', 'version', 'openapi', 'readyz', 'livez', 'healthz'])
const SUBRESOURCES_REFUSED: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy', 'token'])
/** A commit can contain any object, even a Secret, and returns it. */
const RESOURCES_REFUSED: ReadonlySet<string> = new Set(['secrets', 'commits', 'tokenrequests', 'tokenreviews'])

export interface ApiPath {
  /** Path and query for the API server. */
  readonly path: string
  /** Absent for paths that are not about a resource, such as discovery. */
  readonly resource?: string
  readonly name?: string
  readonly subresource?: string
}

/**
 * Parses the path of a request and throws 403 if it is not forwarded.
 *   /api/v1/namespaces/shop/pods/web-0/log → resource pods, name web-0, subresource log
 *   /apis/storage.k8s.io/v1/storageclasses → resource storageclasses
 *   /api/v1/namespaces/secrets             → resource namespaces, name secrets
 */
export function parseApiPath(target: string): ApiPath {
  const [rawPath = '', query = ''] = splitOnce(target, '?')
  const segments = rawPath.split('/').slice(1).map(decodeSegment)
  if (rawPath.endsWith('/')) segments.pop()
  const [root = '', ...rest] = segments
  if (!ROOTS.has(root)) throw notForwarded(`the path /${root}`)
  const resourcePath = parseResource(root, rest)
  const { resource, subresource } = resourcePath
  if (resource !== undefined && RESOURCES_REFUSED.has(resource)) throw notForwarded(`requests for ${resource}`)
  if (subresource !== undefined && SUBRESOURCES_REFUSED.has(subresource)) {
    throw notForwarded(`requests for ${resource}/${subresource}`)
  }
  const parameters = new URLSearchParams(query)
  if (isTrue(parameters.get('watch'))) throw notForwarded('watches')
  if (isTrue(parameters.get('follow'))) throw notForwarded('logs that are followed')
  return { path: `/${segments.map(encodeURIComponent).join('/')}${query ? `?${query}` : ''}`, ...resourcePath }
}

function parseResource(root: string, rest: readonly string[]): Omit<ApiPath, 'path'> {
  if (root !== 'api' && root !== 'apis') return {}
  const parts = rest.slice(root === 'api' ? 1 : 2)
  // Deprecated forms of paths: /api/v1/watch/… and /api/v1/proxy/…
  if (parts[0] === 'watch' || parts[0] === 'proxy') throw notForwarded(`paths with the prefix ${parts[0]}`)
  // /namespaces/NAME/status and /namespaces/NAME/finalize are about the namespace itself.
  const isInNamespace =
    parts[0] === 'namespaces' && parts.length > 2 && !['status', 'finalize'].includes(parts[2] as string)
  const [resource, name, subresource] = isInNamespace ? parts.slice(2) : parts
  return {
    ...(resource === undefined ? {} : { resource }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  }
}

/** Throws 400 for a segment that the API server could interpret as several segments or another path. */
function decodeSegment(text: string, index: number, all: readonly string[]): string {
  let segment: string
  try {
    segment = decodeURIComponent(text)
  } catch {
    throw badRequest(`the path has an invalid escape: ${text}`)
  }
  const isTrailing = segment === '' && index === all.length - 1
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be rejected
  if (!isTrailing && (/^\.{0,2}$/.test(segment) || /[/\\\u0000-\u001f\u007f]/.test(segment))) {
    throw badRequest(`the path has an invalid segment: ${JSON.stringify(text)}`)
  }
  return segment
}

/** Interprets a parameter as API servers do: any value but `0` and `false` is true, including an empty one. */
const isTrue = (value: string | null): boolean => value !== null && value !== '0' && value.toLowerCase() !== 'false'

function splitOnce(text: string, separator: string): readonly [string, string] {
  const index = text.indexOf(separator)
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)]
}
