// Serves discovery: /api, /apis and the lists below them. Documents are built on first request and cached, because the
// served resources do not change while the server runs. The legacy form of /api is not cached: it contains the Host header.
import { notAcceptable } from '../../api/status-error.ts'
import { type AcceptClause, parseAccept } from '../http/negotiate.ts'
import type { Resources } from '../resources.ts'
import {
  AGGREGATED_GROUP,
  AGGREGATED_KIND,
  AGGREGATED_VERSIONS,
  type AggregatedVersion,
  groupDiscoveryList,
} from './aggregated-discovery.ts'
import {
  type Document,
  type DocumentResponse,
  documentResponse,
  headerOf,
  jsonDocument,
  type RequestHeaders,
} from './document.ts'
import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './legacy-discovery.ts'

export interface Discovery {
  /** Returns undefined if the path does not belong to discovery, or its group or version is not served. */
  handle(path: string, headers: RequestHeaders): DocumentResponse | undefined
}

export function createDiscovery(resources: Resources): Discovery {
  const documents = new Map<string, Document>()
  /** Calls `content` on first use only. Undefined content is not cached. */
  const getOrBuild = (name: string, content: () => object | undefined, contentType?: string): Document | undefined => {
    const existingDocument = documents.get(name)
    if (existingDocument) return existingDocument
    const value = content()
    if (!value) return undefined
    const document = jsonDocument(value, contentType)
    documents.set(name, document)
    return document
  }

  const rootDocument = (path: '/api' | '/apis', headers: RequestHeaders): Document | undefined => {
    const form = negotiateDiscovery(headerOf(headers, 'accept'))
    if (form !== 'legacy') {
      const list = () => groupDiscoveryList(resources, form, { isCore: path === '/api' })
      return getOrBuild(`${path} ${form}`, list, contentTypeOf(form))
    }
    if (path === '/apis') return getOrBuild(path, () => apiGroupList(resources))
    return jsonDocument(apiVersions(resources, headerOf(headers, 'host') ?? ''))
  }

  const listDocument = (path: string): Document | undefined => {
    const [top, ...names] = path.split('/').slice(1)
    const [groupOrVersion = '', version = ''] = names
    if (top === 'api' && names.length === 1)
      return getOrBuild(path, () => apiResourceList(resources, '', groupOrVersion))
    if (top === 'apis' && names.length === 1) return getOrBuild(path, () => apiGroup(resources, groupOrVersion))
    if (top === 'apis' && names.length === 2)
      return getOrBuild(path, () => apiResourceList(resources, groupOrVersion, version))
    return undefined
  }

  return {
    handle(requestPath, headers) {
      const path = requestPath.length > 1 && requestPath.endsWith('/') ? requestPath.slice(0, -1) : requestPath
      const document = path === '/api' || path === '/apis' ? rootDocument(path, headers) : listDocument(path)
      return document && documentResponse(document, headers)
    },
  }
}

/**
 * Returns the form that the first supported clause of the Accept header names, in any order of its parameters. Without the
 * header, returns the legacy form.
 */
function negotiateDiscovery(accept: string | undefined): AggregatedVersion | 'legacy' {
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

function aggregatedVersionOf({ parameters }: AcceptClause): AggregatedVersion | undefined {
  if (parameters.get('g') !== AGGREGATED_GROUP || parameters.get('as') !== AGGREGATED_KIND) return undefined
  return AGGREGATED_VERSIONS.find((version) => version === parameters.get('v'))
}

/** Clients recognise aggregated discovery by these parameters of the content type. */
const contentTypeOf = (version: AggregatedVersion): string =>
  `application/json;g=${AGGREGATED_GROUP};v=${version};as=${AGGREGATED_KIND}`
