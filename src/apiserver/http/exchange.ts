// A request and its answer, free of any transport: the HTTPS listener makes and sends them, and so do tests.
import type { Status } from '../../api/status-error.ts'
import type { ClientCertificate } from '../security/index.ts'
import type { StreamSink } from '../verbs/watch.ts'

export interface ApiRequest {
  readonly method: string
  /** Without the query, as it came. */
  readonly path: string
  readonly query: URLSearchParams
  /** Lower-case names; repeated headers joined. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Every value of a header that may come more than once. */
  headerValues(name: string): readonly string[]
  headerNames(): readonly string[]
  readonly clientCert?: ClientCertificate | undefined
  /** Throws 413 when the body is larger than allowed. */
  readBody(): Promise<Uint8Array>
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Absent for streams. */
  readonly body?: Uint8Array
  /** Feeds the open connection until it ends. */
  readonly stream?: (sink: StreamSink) => void
}

export const JSON_TYPE = 'application/json'
const NO_CACHE = 'no-cache, private'

export const jsonAnswer = (status: number, value: unknown, headers: ApiAnswer['headers'] = {}): ApiAnswer =>
  bytesAnswer(status, Buffer.from(JSON.stringify(value)), headers)

export const bytesAnswer = (status: number, body: Uint8Array, headers: ApiAnswer['headers'] = {}): ApiAnswer => ({
  status,
  headers: { 'content-type': JSON_TYPE, 'cache-control': NO_CACHE, ...headers },
  body,
})

export const textAnswer = (status: number, text: string, headers: ApiAnswer['headers'] = {}): ApiAnswer => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': NO_CACHE, ...headers },
  body: Buffer.from(text),
})

export const successAnswer = (status: number, rest: Pick<Status, 'details' | 'code'>): ApiAnswer =>
  jsonAnswer(status, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...rest })

export function statusAnswer(status: Status): ApiAnswer {
  const retry = status.details?.retryAfterSeconds
  return jsonAnswer(status.code ?? 200, status, retry ? { 'retry-after': String(retry) } : {})
}

/** `Warning: 299 - "text"`, one per finding; what a header cannot carry is left out of the text. */
export const warningHeaders = (warnings: readonly string[]): ApiAnswer['headers'] =>
  warnings.length === 0
    ? {}
    : { warning: warnings.slice(0, WARNINGS_MAX).map((text) => `299 - "${escapeWarning(text)}"`) }

const WARNINGS_MAX = 32
const WARNING_CHARACTERS_MAX = 256

const escapeWarning = (text: string): string =>
  text
    .slice(0, WARNING_CHARACTERS_MAX)
    .replace(/[^\x20-\x7e]/g, '?')
    .replace(/[\\"]/g, (character) => `\\${character}`)
