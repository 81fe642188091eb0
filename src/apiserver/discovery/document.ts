// Builds the responses of discovery and OpenAPI documents, with an ETag, and 304 for clients that already have the document.
import { createHash } from 'node:crypto'

export interface DocumentResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Request headers as in node:http, with lower-case names. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

export interface Document {
  readonly contentType: string
  readonly body: Buffer
  /** Hash of the body: the ETag without its quotes. */
  readonly hash: string
}

export function documentOf(contentType: string, body: Buffer): Document {
  return { contentType, body, hash: createHash('sha256').update(body).digest('hex').toUpperCase() }
}

export const jsonDocument = (value: unknown, contentType = 'application/json'): Document =>
  documentOf(contentType, Buffer.from(JSON.stringify(value)))

/** Returns 200 with the document, or 304 if the client already has it. */
export function documentResponse(
  document: Document,
  request: RequestHeaders,
  extraHeaders: Record<string, string> = {},
): DocumentResponse {
  const etag = `"${document.hash}"`
  const headers = { etag, vary: 'Accept', 'cache-control': 'public', ...extraHeaders }
  if (matches(headerOf(request, 'if-none-match'), etag)) return { status: 304, headers, body: EMPTY_BODY }
  return { status: 200, headers: { ...headers, 'content-type': document.contentType }, body: document.body }
}

export function headerOf(request: RequestHeaders, name: string): string | undefined {
  const value = request[name]
  return typeof value === 'string' ? value : value?.join(',')
}

/** Computes a value on first use and caches it. */
export function lazy<T>(compute: () => T): () => T {
  let cachedValue: { value: T } | undefined
  return () => {
    cachedValue ??= { value: compute() }
    return cachedValue.value
  }
}

const EMPTY_BODY = Buffer.alloc(0)

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => {
    const strong = tag.trim().replace(/^W\//, '')
    return strong === etag || strong === '*'
  })
}
