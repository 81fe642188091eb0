// Sends one request to an API server over a keep-alive connection, with limits on time and size and without retries. A request
// without a response fails with ApiError: 503, 504 after the timeout, 499 if the caller aborts it. http-client.ts interprets
// responses and retries.
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { createSecureContext } from 'node:tls'
import { ApiError, requestAborted, timedOut, unavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Connection, Credentials } from '../connection/connection.ts'

export interface TransportRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

export interface Transport {
  /** Returns the complete response. */
  call(request: TransportRequest): Promise<HttpResponse>
  /** Returns the response when its headers have arrived. The caller must read or destroy it. */
  open(request: TransportRequest): Promise<IncomingMessage>
  /** Returns the number of sockets, in use or idle. */
  countSockets(): number
  /** Closes all sockets. */
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
  /** Timeout for the headers of a response, and again for the body of a response that `call` returns. Default: 60 s. */
  readonly timeoutMs?: number
  readonly userAgent?: string
}

const TIMEOUT_MS = 60_000
const KEEP_ALIVE_PROBE_MS = 15_000
const RESPONSE_BYTES_MAX = 512 * 1024 * 1024 // a larger list must be requested in pages
const SOCKETS_MAX = 512

export function createTransport(options: TransportOptions): Transport {
  const { connection, clock, timeoutMs = TIMEOUT_MS, userAgent = 'stowage' } = options
  const base = new URL(connection.server)
  const isPlaintext = base.protocol === 'http:'
  const trust = connection.ca ? { ca: connection.ca } : {}
  const tls = {
    ...(connection.serverName ? { servername: connection.serverName } : {}),
    ...(connection.insecure ? { rejectUnauthorized: false } : {}),
  }
  const keepAlive = {
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_PROBE_MS,
    maxSockets: SOCKETS_MAX,
    scheduling: 'lifo' as const,
  }
  const address = {
    protocol: base.protocol,
    hostname: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port || (isPlaintext ? 80 : 443),
  }
  const pathPrefix = base.pathname.replace(/\/$/, '')
  // A TLS connection authenticates once, in its handshake, so a new client certificate requires new connections.
  let agent: { cert: string | undefined; agent: HttpAgent | HttpsAgent } | undefined
  /** The agents of earlier certificates that have connections in use. */
  let earlierAgents: (HttpAgent | HttpsAgent)[] = []
  const agentFor = ({ cert, key }: Credentials) => {
    if (agent && agent.cert === cert) return agent.agent
    // Idle connections are closed. Connections in use, such as watches, continue until they end.
    for (const idleSocket of Object.values(agent?.agent.freeSockets ?? {}).flat()) idleSocket?.destroy()
    earlierAgents = [...earlierAgents, ...(agent ? [agent.agent] : [])].filter(({ sockets }) => countOf(sockets) > 0)
    // Certificates are parsed once for all connections.
    const secureContext = () => createSecureContext({ ...trust, ...(cert ? { cert, key } : {}) })
    const newAgent = isPlaintext
      ? new HttpAgent(keepAlive)
      : new HttpsAgent({ ...keepAlive, ...tls, secureContext: secureContext() })
    // All connections of the agent have the same server and credentials, so a connection's name can be constant. The
    // default name contains the certificates and is built for every request.
    newAgent.getName = () => connection.server
    agent = { cert, agent: newAgent }
    return newAgent
  }

  async function open(request: TransportRequest): Promise<IncomingMessage> {
    const { method, path, headers = {}, body, signal } = request
    if (signal?.aborted) throw requestAborted()
    let credentials: Credentials
    try {
      credentials = await connection.credentials()
    } catch (error) {
      throw unavailable(`no credentials for ${connection.server}: ${(error as Error).message}`)
    }
    const sendRequest = isPlaintext ? httpRequest : httpsRequest
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest = sendRequest({
        ...address,
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
      const abort = () => outgoing.destroy(requestAborted())
      const cancelTimeout = clock.after(timeoutMs, () =>
        outgoing.destroy(timedOut(`${connection.server} did not respond within ${timeoutMs / 1_000} s`)),
      )
      const stopWaiting = () => {
        cancelTimeout()
        signal?.removeEventListener('abort', abort)
      }
      signal?.addEventListener('abort', abort, { once: true })
      outgoing.once('response', (incoming) => {
        stopWaiting()
        incoming.on('error', () => {}) // the reader receives the error; without a listener it would end the process
        resolve(incoming)
      })
      outgoing.once('error', (error) => {
        stopWaiting()
        reject(unreachable(error, connection.server))
      })
      outgoing.end(body)
    })
  }

  async function call(request: TransportRequest): Promise<HttpResponse> {
    const incoming = await open(request)
    const { signal } = request
    const abort = () => incoming.destroy(requestAborted())
    const cancelTimeout = clock.after(timeoutMs, () =>
      incoming.destroy(timedOut(`the response of ${connection.server} was not complete within ${timeoutMs / 1_000} s`)),
    )
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of incoming) {
        chunks.push(chunk as Buffer)
        size += (chunk as Buffer).length
        if (size > RESPONSE_BYTES_MAX) {
          incoming.destroy()
          throw new ApiError(
            413,
            'RequestEntityTooLarge',
            `the response is larger than ${RESPONSE_BYTES_MAX} bytes; request the list in pages`,
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

  const listAgents = () => [...earlierAgents, ...(agent ? [agent.agent] : [])]
  return {
    open,
    call,
    countSockets: () =>
      listAgents().reduce((sum, { sockets, freeSockets }) => sum + countOf(sockets) + countOf(freeSockets), 0),
    close() {
      for (const openAgent of listAgents()) openAgent.destroy()
    },
  }
}

const countOf = (sockets: NodeJS.ReadOnlyDict<unknown[]>): number =>
  Object.values(sockets).reduce((sum, list) => sum + (list?.length ?? 0), 0)

export function unreachable(error: unknown, server: string): ApiError {
  if (error instanceof ApiError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const hint = CONNECTION_HINTS[code ?? '']
  return unavailable(`cannot reach ${server}: ${code ?? message}${hint ? ` (${hint})` : ''}`)
}

const OTHER_CA =
  'its certificate is not signed by the certificate authority in the kubeconfig or, in a pod, that of the service account'

/** Explanations of frequent error codes. */
const CONNECTION_HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
  EPROTO: 'its response is not TLS: use http:// if it serves plain HTTP',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: OTHER_CA,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: OTHER_CA,
  SELF_SIGNED_CERT_IN_CHAIN: OTHER_CA,
  DEPTH_ZERO_SELF_SIGNED_CERT: OTHER_CA,
  CERT_SIGNATURE_FAILURE: OTHER_CA,
}
