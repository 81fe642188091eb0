// Answers /openapi/v3, /openapi/v2 and what lies below them. Everything is made on first request and kept.
// A group version's document is named with its hash, so clients may keep it for as long as they like.
import { notAcceptable } from '../../api/status-error.ts'
import {
  type Answer,
  answerWith,
  type Document,
  documentOf,
  headerOf,
  jsonDocument,
  once,
  type RequestHeaders,
} from '../discovery/index.ts'
import { parseAccept } from '../http/negotiate.ts'
import type { Resources } from '../resources.ts'
import { documentV2 } from './document-v2.ts'
import { documentV3 } from './document-v3.ts'
import { encodeDocument } from './gnostic.ts'

export interface OpenApi {
  /** Undefined when the path is not one of OpenAPI, or names a group version that is not served. */
  handle(path: string, query: URLSearchParams, headers: RequestHeaders): Answer | undefined
}

export const SWAGGER_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** How clients ask for it: the at sign is not allowed in media types, so it is never answered. */
const SWAGGER_PROTOBUF_ASKED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
/** Where clients look for the binary form when they find nothing at /openapi/v2. */
const SWAGGER_PROTOBUF_PATH = '/swagger-2.0.0.pb-v1'
const JSON_MEDIA = 'application/json'

const V3_PATH = '/openapi/v3'
const V2_PATH = '/openapi/v2'
const FOREVER = 'public, immutable, max-age=31536000'

export function createOpenApi(resources: Resources): OpenApi {
  const groupDocuments = new Map<string, () => Document>()
  for (const { group, versions } of resources.groups) {
    for (const version of versions) {
      const name = group ? `apis/${group}/${version}` : `api/${version}`
      groupDocuments.set(
        name,
        once(() => jsonDocument(documentV3(resources, group, version))),
      )
    }
  }
  const hashedUrl = (name: string, { hash }: Document) => `${V3_PATH}/${name}?hash=${hash}`
  const index = once(() =>
    jsonDocument({
      paths: Object.fromEntries(
        [...groupDocuments].map(([name, document]) => [name, { serverRelativeURL: hashedUrl(name, document()) }]),
      ),
    }),
  )
  const swaggerJson = once(() => jsonDocument(documentV2(resources)))
  const swaggerProtobuf = once(() => documentOf(SWAGGER_PROTOBUF, encodeDocument(documentV2(resources))))

  const groupVersion = (name: string, query: URLSearchParams, headers: RequestHeaders): Answer | undefined => {
    const document = groupDocuments.get(name)?.()
    if (!document) return undefined
    choose(headers, [JSON_MEDIA])
    const hash = query.get('hash')
    if (!hash) return answerWith(document, headers)
    if (hash === document.hash) return answerWith(document, headers, { 'cache-control': FOREVER })
    return { status: 301, headers: { location: hashedUrl(name, document), vary: 'Accept' }, body: Buffer.alloc(0) }
  }

  const openApiV2 = (headers: RequestHeaders): Answer => {
    const media = choose(headers, [JSON_MEDIA, SWAGGER_PROTOBUF, SWAGGER_PROTOBUF_ASKED])
    return answerWith(media === JSON_MEDIA ? swaggerJson() : swaggerProtobuf(), headers)
  }

  return {
    handle(asked, query, headers) {
      const path = asked.endsWith('/') ? asked.slice(0, -1) : asked
      if (path === V3_PATH) {
        choose(headers, [JSON_MEDIA])
        return answerWith(index(), headers)
      }
      if (path.startsWith(`${V3_PATH}/`)) return groupVersion(path.slice(V3_PATH.length + 1), query, headers)
      if (path === V2_PATH) return openApiV2(headers)
      if (path === SWAGGER_PROTOBUF_PATH) return answerWith(swaggerProtobuf(), headers)
      return undefined
    },
  }
}

/** The media type of the first clause that can be served; without an Accept header the first offered. */
function choose(headers: RequestHeaders, offered: readonly [string, ...string[]]): string {
  const accept = headerOf(headers, 'accept')
  if (!accept) return offered[0]
  for (const { type } of parseAccept(accept)) {
    if (type === '*/*' || type === 'application/*') return offered[0]
    if (offered.includes(type)) return type
  }
  throw notAcceptable(
    `only the following media types are accepted: ${offered.join(', ')}; the request accepts ${accept.slice(0, 200)}`,
  )
}
