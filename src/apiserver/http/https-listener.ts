// The HTTPS listener (HTTP/1.1), with watches as long-lived responses or WebSockets. To stop, it accepts no new connections,
// ends the watches and tunnels, waits up to ten seconds for the requests in flight and closes the remaining connections.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { clientCertificateOf, type Pki, servingTlsOptions } from '../security/index.ts'
import type { ApiRequest, ApiResponse, LongBody, StreamSink } from './messages.ts'
import { createPendingBytes, type PendingBytes } from './pending-bytes.ts'
import { createBodyReader, type ReadBody } from './read-body.ts'
import { createRequestOrder } from './request-order.ts'
import { createSliceSender } from './slice-sender.ts'
import { createWebsocketWatches } from './websocket-watch.ts'

const HEADER_BYTES_MAX = 64 * 1024
const CONNECTIONS_MAX = 20_000
/** Maximum number of bytes that wait to be sent in all counted responses; beyond this, connections are closed. */
const RESPONSE_BYTES_TOTAL_MAX = 128 * 1024 * 1024
// Go clients keep idle connections for 90 s. Closing a connection earlier could cut off a request in transit.
const KEEP_ALIVE_MS = 120_000
const HEADERS_TIMEOUT_MS = 10_000
/** Time to send a request with its body. */
const REQUEST_TIMEOUT_MS = 30_000
const CONNECTION_CHECK_MS = 2_000
/** Responses with fewer pending bytes are not counted, except those of watches. Nor are long bodies, which wait in slices. */
const COUNTED_BYTES_MIN = 16 * 1024
const CLIENT_ERROR_STATUSES: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
}
const DRAIN_MS_MAX = 10_000

export interface HttpsServerOptions {
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  readonly pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'>
  readonly clock: Clock
  readonly log: Logger
  /** Default: REQUEST_TIMEOUT_MS. */
  readonly requestTimeoutMs?: number
}

export interface HttpsListenerOptions extends HttpsServerOptions {
  readonly host: string
  readonly port: number
}

export interface HttpsListener extends Pick<HttpsServer, 'setCertificates' | 'stop'> {
  readonly host: string
  readonly port: number
}

export interface HttpsServer {
  /** Listens on a TCP port, or on a Unix socket. */
  listen(address: ListenTarget): Promise<void>
  /** Returns the port. Port 0 chooses a free one. */
  port(): number
  /** Replaces the certificates for new connections. Throws if the certificate does not belong to the key. */
  setCertificates(pki: HttpsServerOptions['pki']): void
  /** Resolves after the last connection is closed. */
  stop(): Promise<void>
}

export async function listenHttps({ host, port, ...options }: HttpsListenerOptions): Promise<HttpsListener> {
  const server = createHttpsServer(options)
  await server.listen({ host, port })
  return { host, port: server.port(), setCertificates: server.setCertificates, stop: server.stop }
}

type ListenTarget = { readonly host: string; readonly port: number } | { readonly path: string }

/** Creates the server of the listener, which does not listen yet. */
export function createHttpsServer(options: HttpsServerOptions): HttpsServer {
  const { handle, pki, clock, log, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options
  const streams = new Set<ServerResponse>()
  const pendingBytes = createPendingBytes(RESPONSE_BYTES_TOTAL_MAX, (bytes) =>
    log.debug({ bytes }, 'closed the connection of a client that does not read its response'),
  )
  const sliceSender = createSliceSender({ clock, log })
  const readBody = createBodyReader()
  const requestOf = (incoming: IncomingMessage) => toApiRequest(incoming, readBody)
  let isStopping = false
  const server = createServer(
    {
      ...servingTlsOptions(pki),
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(CONNECTION_CHECK_MS, requestTimeoutMs),
      maxHeaderSize: HEADER_BYTES_MAX,
      noDelay: true,
    },
    (incoming, outgoing) => {
      if (isStopping) outgoing.setHeader('connection', 'close')
      runInOrder(incoming, outgoing, () => void respond(incoming, outgoing))
    },
  )
  server.maxConnections = CONNECTIONS_MAX
  const runInOrder = createRequestOrder()
  const websockets = createWebsocketWatches({ handle, requestOf, pendingBytes, log })
  server.on('upgrade', (incoming, socket, head) => {
    websockets.upgrade(incoming, socket, head).catch((error) => {
      log.error({ err: error, path: incoming.url }, 'WebSocket upgrade failed')
      socket.destroy()
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const status = CLIENT_ERROR_STATUSES[error.code ?? ''] ?? '400 Bad Request'
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  })
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'TLS handshake failed'))

  async function respond(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      const request = requestOf(incoming)
      send(await handle(request), incoming, outgoing, request.userName)
    } catch (error) {
      log.error({ err: error, path: incoming.url }, 'cannot send the response')
      outgoing.destroy()
    }
  }

  function send(response: ApiResponse, incoming: IncomingMessage, outgoing: ServerResponse, user = ''): void {
    const { seats } = response
    if (seats) outgoing.once('close', () => seats.release())
    if (outgoing.destroyed) return void seats?.release()
    const headers = response.headers as Record<string, string | string[]>
    // Without an upgrade there is no connection to take over: the Connection header of the request does not name Upgrade.
    if (response.tunnel) return void outgoing.writeHead(400, { connection: 'close', 'content-length': 0 }).end()
    if (response.stream) {
      outgoing.writeHead(response.status, headers)
      outgoing.flushHeaders()
      if (incoming.method === 'HEAD') return void outgoing.end()
      streams.add(outgoing)
      const sink = new ResponseSink(outgoing, pendingBytes, user)
      sink.onClose(() => streams.delete(outgoing))
      response.stream(sink, seats)
      if (isStopping) outgoing.end()
      return
    }
    if (response.longBody) return void sendLongBody(response.longBody, response, incoming, outgoing)
    const body = response.body ?? new Uint8Array()
    // A body that is too large is not read to its end, so the connection cannot be reused.
    const closeHeader = response.status === 413 ? { connection: 'close' } : {}
    outgoing.writeHead(response.status, { ...headers, 'content-length': body.length, ...closeHeader })
    outgoing.end(incoming.method === 'HEAD' ? undefined : body)
    if (outgoing.writableLength < COUNTED_BYTES_MIN) return
    pendingBytes.update(outgoing, outgoing.writableLength, user)
    outgoing.once('close', () => pendingBytes.remove(outgoing))
  }

  function sendLongBody(body: LongBody, response: ApiResponse, incoming: IncomingMessage, outgoing: ServerResponse) {
    const length = body.byteLength === undefined ? {} : { 'content-length': body.byteLength }
    outgoing.writeHead(response.status, { ...(response.headers as Record<string, string | string[]>), ...length })
    if (incoming.method === 'HEAD') outgoing.end()
    else sliceSender.send(outgoing, body, response.seats)
  }

  return {
    listen: (target) =>
      new Promise<void>((resolve, reject) => {
        server.once('error', (error: NodeJS.ErrnoException) => reject(explainListenError(error, target)))
        server.listen(target, resolve)
      }),
    port: () => (server.address() as AddressInfo).port,
    setCertificates: (newPki) => server.setSecureContext(servingTlsOptions(newPki)),
    stop: () => {
      isStopping = true
      websockets.closeAll()
      return drain(server, streams, clock)
    },
  }
}

async function drain(server: Server, streams: Set<ServerResponse>, clock: Clock): Promise<void> {
  const serverClosed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const stream of streams) stream.end()
  server.closeIdleConnections()
  const cancelTimer = clock.after(DRAIN_MS_MAX, () => server.closeAllConnections())
  const stopSweep = startInterval(clock, 50, () => server.closeIdleConnections())
  await serverClosed
  stopSweep()
  cancelTimer()
}

function startInterval(clock: Clock, ms: number, run: () => void): () => void {
  let cancelTimer = clock.after(ms, tick)
  function tick() {
    run()
    cancelTimer = clock.after(ms, tick)
  }
  return () => cancelTimer()
}

const NO_QUERY = new URLSearchParams()

function toApiRequest(incoming: IncomingMessage, readBody: ReadBody): ApiRequest {
  let body: Promise<Uint8Array> | undefined
  const url = incoming.url ?? '/'
  const queryStart = url.indexOf('?')
  return {
    method: incoming.method ?? 'GET',
    path: queryStart < 0 ? url : url.slice(0, queryStart),
    query: queryStart < 0 ? NO_QUERY : new URLSearchParams(url.slice(queryStart + 1)),
    headers: incoming.headers as Record<string, string | undefined>,
    headerNames: () => Object.keys(incoming.headers),
    headerValues: (name) => incoming.headersDistinct[name] ?? [],
    isClosed: () => incoming.socket.destroyed,
    clientCert: clientCertificateOf(incoming.socket as TLSSocket),
    remoteAddress: incoming.socket.remoteAddress,
    readBody: () => {
      body ??= readBody(incoming)
      return body
    },
  }
}

/** A class with one listener, because a server may have thousands of idle watches. */
class ResponseSink implements StreamSink {
  readonly #outgoing: ServerResponse
  readonly #pendingBytes: PendingBytes
  readonly #user: string
  #closeCallbacks: (() => void)[] = []
  #awaitsDrain = false

  constructor(outgoing: ServerResponse, pendingBytes: PendingBytes, user: string) {
    this.#outgoing = outgoing
    this.#pendingBytes = pendingBytes
    this.#user = user
    // Not the close event of the request, which is emitted as soon as its body has been read.
    outgoing.once('close', () => this.#onClosed())
  }

  get pendingBytes(): number {
    return this.#outgoing.writableLength
  }

  write(chunk: Uint8Array): void {
    // An event may still arrive after the listener has ended the stream to stop.
    if (this.#outgoing.writableEnded || this.#outgoing.write(chunk)) return
    this.#pendingBytes.update(this.#outgoing, this.#outgoing.writableLength, this.#user)
    if (this.#awaitsDrain) return
    this.#awaitsDrain = true
    this.#outgoing.once('drain', () => {
      this.#awaitsDrain = false
      this.#pendingBytes.remove(this.#outgoing)
    })
  }

  onDrain(run: () => void): void {
    if (this.#outgoing.writableNeedDrain) this.#outgoing.once('drain', run)
    else run()
  }

  end(): void {
    this.#outgoing.end()
  }

  cut(): void {
    this.#outgoing.destroy()
  }

  onClose(run: () => void): void {
    this.#closeCallbacks.push(run)
  }

  #onClosed(): void {
    this.#pendingBytes.remove(this.#outgoing)
    const callbacks = this.#closeCallbacks
    this.#closeCallbacks = []
    for (const run of callbacks) run()
  }
}

function explainListenError(error: NodeJS.ErrnoException, target: ListenTarget): Error {
  if ('path' in target) return error
  const { host, port } = target
  if (error.code === 'EADDRINUSE') {
    return new Error(
      `Cannot listen on ${host}:${port}: the address is in use. Stop the other program, or choose another address with --listen HOST:PORT.`,
    )
  }
  if (error.code === 'EACCES') {
    return new Error(
      `Cannot listen on ${host}:${port}: permission denied. Choose a port above 1023 with --listen HOST:PORT.`,
    )
  }
  return new Error(`Cannot listen on ${host}:${port}: ${error.message}`)
}
