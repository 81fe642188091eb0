// Documents that never change while the server runs: bytes, their ETag, and 304 for a client that already has them.
// Discovery and OpenAPI serve all their documents this way.
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

/** 200 with the document, or 304 if the client already has it. */
export function documentResponse(
  document: Document,
  request: RequestHeaders,
  more: Record<string, string> = {},
): DocumentResponse {
  const etag = `"${document.hash}"`
  const headers = { etag, vary: 'Accept', 'cache-control': 'public', ...more }
  if (matches(headerOf(request, 'if-none-match'), etag)) return { status: 304, headers, body: NOTHING }
  return { status: 200, headers: { ...headers, 'content-type': document.contentType }, body: document.body }
}

export function headerOf(request: RequestHeaders, name: string): string | undefined {
  const value = request[name]
  return typeof value === 'string' ? value : value?.join(',')
}

/** Computes a value on first use, and keeps it. */
export function once<T>(compute: () => T): () => T {
  let kept: { value: T } | undefined
  return () => {
    kept ??= { value: compute() }
    return kept.value
  }
}

const NOTHING = Buffer.alloc(0)

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => {
    const strong = tag.trim().replace(/^W\//, '')
    return strong === etag || strong === '*'
  })
}
