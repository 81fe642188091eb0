// Serves discovery: /api, /apis and the lists below them. Documents are built on first request and kept, because the
// served resources do not change while the server runs.
import { notAcceptable } from '../../api/status-error.ts'
import { type Clause, parseAccept } from '../http/negotiate.ts'
import type { Resources } from '../resources.ts'
import {
  AGGREGATED_GROUP,
  AGGREGATED_KIND,
  AGGREGATED_VERSIONS,
  type AggregatedVersion,
  groupDiscoveryList,
} from './aggregated.ts'
import {
  type Document,
  type DocumentResponse,
  documentResponse,
  headerOf,
  jsonDocument,
  type RequestHeaders,
} from './document.ts'
import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './legacy.ts'

export interface Discovery {
  /** Undefined if the path does not belong to discovery or names a group or version that is not served. */
  handle(path: string, headers: RequestHeaders): DocumentResponse | undefined
}

export function createDiscovery(resources: Resources): Discovery {
  const kept = new Map<string, Document>()
  /** `content` is called on first use only. Undefined content is not kept. */
  const keep = (name: string, content: () => object | undefined, contentType?: string): Document | undefined => {
    const known = kept.get(name)
    if (known) return known
    const value = content()
    if (!value) return undefined
    const document = jsonDocument(value, contentType)
    kept.set(name, document)
    return document
  }

  const root = (path: '/api' | '/apis', headers: RequestHeaders): Document | undefined => {
    const form = negotiateDiscovery(headerOf(headers, 'accept'))
    if (form !== 'legacy') {
      const list = () => groupDiscoveryList(resources, form, { core: path === '/api' })
      return keep(`${path} ${form}`, list, contentTypeOf(form))
    }
    if (path === '/apis') return keep(path, () => apiGroupList(resources))
    return jsonDocument(apiVersions(resources, headerOf(headers, 'host') ?? ''))
  }

  const lists = (path: string): Document | undefined => {
    const [top, ...names] = path.split('/').slice(1)
    const [first = '', second = ''] = names
    if (top === 'api' && names.length === 1) return keep(path, () => apiResourceList(resources, '', first))
    if (top === 'apis' && names.length === 1) return keep(path, () => apiGroup(resources, first))
    if (top === 'apis' && names.length === 2) return keep(path, () => apiResourceList(resources, first, second))
    return undefined
  }

  return {
    handle(requestPath, headers) {
      const path = requestPath.length > 1 && requestPath.endsWith('/') ? requestPath.slice(0, -1) : requestPath
      const document = path === '/api' || path === '/apis' ? root(path, headers) : lists(path)
      return document && documentResponse(document, headers)
    },
  }
}

/** The first clause that can be satisfied decides; its parameters may come in any order. */
export function negotiateDiscovery(accept: string | undefined): AggregatedVersion | 'legacy' {
  if (!accept) return 'legacy'
  for (const clause of parseAccept(accept)) {
    if (!JSON_TYPES.includes(clause.type)) continue
    if (!clause.parameters.has('as')) return 'legacy'
    const version = aggregatedVersionOf(clause)
    if (version) return version
  }
  throw notAcceptable(
    `only application/json is served here, plain or as ${AGGREGATED_KIND} of ${AGGREGATED_GROUP} ` +
      `${AGGREGATED_VERSIONS.join(' or ')}; the request accepts ${accept.slice(0, 200)}`,
  )
}

const JSON_TYPES = ['application/json', 'application/*', '*/*']

function aggregatedVersionOf({ parameters }: Clause): AggregatedVersion | undefined {
  if (parameters.get('g') !== AGGREGATED_GROUP || parameters.get('as') !== AGGREGATED_KIND) return undefined
  return AGGREGATED_VERSIONS.find((version) => version === parameters.get('v'))
}

/** Clients recognise aggregated discovery by these parameters of the content type. */
const contentTypeOf = (version: AggregatedVersion): string =>
  `application/json;g=${AGGREGATED_GROUP};v=${version};as=${AGGREGATED_KIND}`
