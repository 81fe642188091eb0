// Carries requests to an API server over kept-open connections: one try, bounded in time and size. What the answers
// mean is http-client.ts; a failure to get one is an ApiError 503 here.
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ApiError, timedOut, unavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Connection, Credentials } from '../connection/connection.ts'

export interface TransportRequest {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

export interface Transport {
  /** The whole answer. */
  call(request: TransportRequest): Promise<HttpResponse>
  /** The answer once its head is there; the caller reads or destroys it. */
  open(request: TransportRequest): Promise<IncomingMessage>
  /** Sockets in use or kept for the next request. */
  sockets(): number
  close(): void
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export interface TransportOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** For a whole answer; for the head of a stream. Default 60 s. */
  readonly timeoutMs?: number
  readonly userAgent?: string
}

const TIMEOUT_MS = 60_000
const KEEP_ALIVE_PROBE_MS = 15_000
const ANSWER_BYTES_MAX = 512 * 1024 * 1024 // a larger list is refused: ask for it in pages
const SOCKETS_MAX = 512

export function createTransport(options: TransportOptions): Transport {
  const { connection, clock, timeoutMs = TIMEOUT_MS, userAgent = 'stowage' } = options
  const base = new URL(connection.server)
  const isPlain = base.protocol === 'http:'
  const trust = connection.ca ? { ca: connection.ca } : {}
  const tls = {
    ...(connection.serverName ? { servername: connection.serverName } : {}),
    ...(connection.insecure ? { rejectUnauthorized: false } : {}),
  }
  const kept = {
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_PROBE_MS,
    maxSockets: SOCKETS_MAX,
    scheduling: 'lifo' as const,
  }
  const place = {
    protocol: base.protocol,
    hostname: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port || (isPlain ? 80 : 443),
  }
  const pathPrefix = base.pathname.replace(/\/$/, '')
  // Connections carry the client's certificate: another one needs other connections.
  let agent: { cert: string | undefined; agent: HttpAgent | HttpsAgent } | undefined
  const agentFor = ({ cert, key }: Credentials) => {
    if (agent && agent.cert === cert) return agent.agent
    // Idle ones are closed; those in use, watches above all, go on to their end.
    for (const idle of Object.values(agent?.agent.freeSockets ?? {}).flat()) idle?.destroy()
    // Certificates are read once, not for every connection.
    const secureContext = () => createSecureContext({ ...trust, ...(cert ? { cert, key } : {}) })
    const made = isPlain ? new HttpAgent(kept) : new HttpsAgent({ ...kept, ...tls, secureContext: secureContext() })
    // All its connections go to one server with one identity; by default each request spells both out, certificates included.
    made.getName = () => connection.server
    agent = { cert, agent: made }
    return made
  }

  async function open(request: TransportRequest): Promise<IncomingMessage> {
    const { method, path, headers = {}, body, signal } = request
    if (signal?.aborted) throw aborted()
    let credentials: Credentials
    try {
      credentials = await connection.credentials()
    } catch (error) {
      throw unavailable(`no credentials for ${connection.server}: ${(error as Error).message}`)
    }
    const start = isPlain ? httpRequest : httpsRequest
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest = start({
        ...place,
        method,
        path: pathPrefix + path,
        agent: agentFor(credentials),
        headers: {
          accept: 'application/json',
          'user-agent': userAgent,
          ...(credentials.token ? { authorization: `Bearer ${credentials.token}` } : {}),
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      })
      const abort = () => outgoing.destroy(aborted())
      const cancelTimeout = clock.after(timeoutMs, () =>
        outgoing.destroy(timedOut(`${connection.server} did not answer within ${timeoutMs / 1_000} s`)),
      )
      const finished = () => {
        cancelTimeout()
        signal?.removeEventListener('abort', abort)
      }
      signal?.addEventListener('abort', abort, { once: true })
      outgoing.once('response', (incoming) => {
        finished()
        incoming.on('error', () => {}) // whoever reads it learns of it; nobody else must fall over it
        resolve(incoming)
      })
      outgoing.once('error', (error) => {
        finished()
        reject(unreachable(error, connection.server))
      })
      outgoing.end(body)
    })
  }

  async function call(request: TransportRequest): Promise<HttpResponse> {
    const incoming = await open(request)
    const { signal } = request
    const abort = () => incoming.destroy(aborted())
    const cancelTimeout = clock.after(timeoutMs, () =>
      incoming.destroy(timedOut(`the answer of ${connection.server} did not end within ${timeoutMs / 1_000} s`)),
    )
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of incoming) {
        chunks.push(chunk as Buffer)
        size += (chunk as Buffer).length
        if (size > ANSWER_BYTES_MAX) {
          incoming.destroy()
          throw new ApiError(
            413,
            'RequestEntityTooLarge',
            `the answer is larger than ${ANSWER_BYTES_MAX} bytes; ask in pages`,
          )
        }
      }
      const text = Buffer.concat(chunks).toString('utf8')
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, text }
    } catch (error) {
      throw unreachable(error, connection.server)
    } finally {
      cancelTimeout()
      signal?.removeEventListener('abort', abort)
    }
  }

  const count = (lists: NodeJS.ReadOnlyDict<unknown[]>) =>
    Object.values(lists).reduce((sum, list) => sum + (list?.length ?? 0), 0)
  return {
    open,
    call,
    sockets: () => (agent ? count(agent.agent.sockets) + count(agent.agent.freeSockets) : 0),
    close: () => agent?.agent.destroy(),
  }
}

export const aborted = (): ApiError =>
  new ApiError(499, 'ClientClosedRequest', 'the request was given up by its caller')

export function unreachable(error: unknown, server: string): ApiError {
  if (error instanceof ApiError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return unavailable(`${server} could not be reached: ${code ?? message}`)
}
