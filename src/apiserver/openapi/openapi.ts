// Serves /openapi/v3, the documents below it, and /openapi/v2. Documents are built on first request and cached.
// The URL of a group version's document contains its hash, so clients may cache the document forever.
import { notAcceptable } from '../../api/status-error.ts'
import {
  type Document,
  type DocumentResponse,
  documentOf,
  documentResponse,
  headerOf,
  jsonDocument,
  lazy,
  type RequestHeaders,
} from '../discovery/index.ts'
import { parseAccept } from '../http/negotiate.ts'
import type { Resources } from '../resources.ts'
import { documentV2 } from './document-v2.ts'
import { documentV3 } from './document-v3.ts'
import { encodeDocument } from './encode-document-v2.ts'

export interface OpenApi {
  /** Returns undefined if the path does not belong to OpenAPI, or its group version is not served. */
  handle(path: string, query: URLSearchParams, headers: RequestHeaders): DocumentResponse | undefined
}

const SWAGGER_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** The media type in the Accept header of clients. Media types must not contain "@", so responses use the one above. */
const SWAGGER_PROTOBUF_ACCEPTED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
/** The path at which old clients request the protobuf form if /openapi/v2 is not served. */
const SWAGGER_PROTOBUF_PATH = '/swagger-2.0.0.pb-v1'
const JSON_MEDIA = 'application/json'

const V3_PATH = '/openapi/v3'
const V2_PATH = '/openapi/v2'
const CACHE_FOREVER = 'public, immutable, max-age=31536000'

export function createOpenApi(resources: Resources): OpenApi {
  const groupDocuments = new Map<string, () => Document>()
  for (const { group, versions } of resources.groups) {
    for (const version of versions) {
      const name = group ? `apis/${group}/${version}` : `api/${version}`
      groupDocuments.set(
        name,
        lazy(() => jsonDocument(documentV3(resources, group, version))),
      )
    }
  }
  const hashedUrl = (name: string, { hash }: Document) => `${V3_PATH}/${name}?hash=${hash}`
  const index = lazy(() =>
    jsonDocument({
      paths: Object.fromEntries(
        [...groupDocuments].map(([name, document]) => [name, { serverRelativeURL: hashedUrl(name, document()) }]),
      ),
    }),
  )
  const swaggerJson = lazy(() => jsonDocument(documentV2(resources)))
  const swaggerProtobuf = lazy(() => documentOf(SWAGGER_PROTOBUF, encodeDocument(documentV2(resources))))

  const groupVersionResponse = (
    name: string,
    query: URLSearchParams,
    headers: RequestHeaders,
  ): DocumentResponse | undefined => {
    const document = groupDocuments.get(name)?.()
    if (!document) return undefined
    chooseMedia(headers, [JSON_MEDIA])
    const hash = query.get('hash')
    if (!hash) return documentResponse(document, headers)
    if (hash === document.hash) return documentResponse(document, headers, { 'cache-control': CACHE_FOREVER })
    return { status: 301, headers: { location: hashedUrl(name, document), vary: 'Accept' }, body: Buffer.alloc(0) }
  }

  const swaggerResponse = (headers: RequestHeaders): DocumentResponse => {
    const media = chooseMedia(headers, [JSON_MEDIA, SWAGGER_PROTOBUF, SWAGGER_PROTOBUF_ACCEPTED])
    return documentResponse(media === JSON_MEDIA ? swaggerJson() : swaggerProtobuf(), headers)
  }

  return {
    handle(requestPath, query, headers) {
      const path = requestPath.endsWith('/') ? requestPath.slice(0, -1) : requestPath
      if (path === V3_PATH) {
        chooseMedia(headers, [JSON_MEDIA])
        return documentResponse(index(), headers)
      }
      if (path.startsWith(`${V3_PATH}/`)) return groupVersionResponse(path.slice(V3_PATH.length + 1), query, headers)
      if (path === V2_PATH) return swaggerResponse(headers)
      if (path === SWAGGER_PROTOBUF_PATH) return documentResponse(swaggerProtobuf(), headers)
      return undefined
    },
  }
}

/** Returns the first accepted media type that is supported, or the first supported one if there is no Accept header. */
function chooseMedia(headers: RequestHeaders, supportedMedia: readonly [string, ...string[]]): string {
  const accept = headerOf(headers, 'accept')
  if (!accept) return supportedMedia[0]
  for (const { type } of parseAccept(accept)) {
    if (type === '*/*' || type === 'application/*') return supportedMedia[0]
    if (supportedMedia.includes(type)) return type
  }
  throw notAcceptable(
    `only the following media types are accepted: ${supportedMedia.join(', ')}; the request accepts ${accept.slice(0, 200)}`,
  )
}
