// API requests and responses, independent of the transport. The HTTPS listener converts HTTP messages to and from them; tests
// build them directly.
import type { Duplex } from 'node:stream'
import type { Status } from '../../api/status-error.ts'
import type { ClientCertificate } from '../security/index.ts'

export interface ApiRequest {
  readonly method: string
  /** The path as received, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Headers by lower-case name; repeated headers are joined. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Returns all values of a header that may be repeated. */
  headerValues(name: string): readonly string[]
  headerNames(): readonly string[]
  readonly clientCert?: ClientCertificate | undefined
  /** The IP address of the connection. */
  readonly remoteAddress?: string | undefined
  /** Throws 413 if the body is too large. */
  readBody(): Promise<Uint8Array>
  /** The name of the user, which the server sets when it has authenticated the request. */
  userName?: string
  /** Returns whether the client has closed the connection. Default: false. */
  isClosed?(): boolean
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Absent for long bodies, streams and tunnels. */
  readonly body?: Uint8Array
  readonly longBody?: LongBody
  /** Writes to the open connection until it ends. Releases the seats of the request after the initial events. */
  readonly stream?: (sink: StreamSink, seats?: Seats) => void
  /** Takes over the connection of a request to upgrade, after the transport has sent the status and headers. */
  readonly tunnel?: (client: Duplex, head: Uint8Array) => void
  /**
   * The seats of the request, if it occupies them until the response is sent. The transport releases them, even if it sends
   * nothing.
   */
  readonly seats?: Seats
}

/** A body that is sent slice by slice. */
export interface LongBody {
  /** Undefined if it is known only at the end. */
  readonly byteLength: number | undefined
  /** The size of the stored objects that it contains. */
  readonly storedBytes: number
  /** Returns the next slice, or undefined at the end. */
  next(): Uint8Array | undefined
}

/** The share of the server's capacity that a request occupies; see flow-control.ts. */
export interface Seats {
  /** May be called more than once. */
  release(): void
  /** Whether other requests of the same level wait. */
  readonly hasWaiters: boolean
}

/** The connection of one watch or of one pod's log: an HTTP response or a WebSocket. */
export interface StreamSink {
  write(chunk: Uint8Array): void
  /** Bytes that wait to be sent. */
  readonly pendingBytes: number
  /** Calls `run` once, when more can be written. */
  onDrain(run: () => void): void
  end(): void
  /** Closes the connection without sending pending bytes, for a client that does not read. */
  cut(): void
  /** Calls `run` once, when the stream has ended for any reason. */
  onClose(run: () => void): void
}

export const JSON_TYPE = 'application/json'
export const NO_CACHE = 'no-cache, private'

export const jsonResponse = (status: number, value: unknown, headers: ApiResponse['headers'] = {}): ApiResponse =>
  bytesResponse(status, Buffer.from(JSON.stringify(value)), headers)

export const bytesResponse = (status: number, body: Uint8Array, headers: ApiResponse['headers'] = {}): ApiResponse => ({
  status,
  headers: { 'content-type': JSON_TYPE, 'cache-control': NO_CACHE, ...headers },
  body,
})

export const textResponse = (status: number, text: string, headers: ApiResponse['headers'] = {}): ApiResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': NO_CACHE, ...headers },
  body: Buffer.from(text),
})

export function statusResponse(status: Status): ApiResponse {
  const retryAfterSeconds = status.details?.retryAfterSeconds
  return jsonResponse(status.code ?? 200, status, retryAfterSeconds ? { 'retry-after': String(retryAfterSeconds) } : {})
}

/** Returns headers of the form `Warning: 299 - "text"`. Characters not allowed in headers become question marks. */
export const warningHeaders = (warnings: readonly string[]): ApiResponse['headers'] =>
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
