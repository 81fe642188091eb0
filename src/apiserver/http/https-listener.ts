// The HTTPS listener (HTTP/1.1), with watches as long-lived responses. To stop, it accepts no new connections, ends the
// watches, waits for the requests in flight and closes the remaining connections.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { badRequest, bodyTooLarge } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { clientCertificateOf, type Pki, servingTlsOptions } from '../security/index.ts'
import type { ApiRequest, ApiResponse, StreamSink } from './messages.ts'
import { createWebsocketWatches } from './websocket-watch.ts'

const BODY_BYTES_MAX = 3 * 1024 * 1024
const HEADER_BYTES_MAX = 1024 * 1024
// Go clients keep idle connections for 90 s. Closing a connection earlier could cut off a request in transit.
const KEEP_ALIVE_MS = 120_000
const HEADERS_TIMEOUT_MS = 32_000
const DRAIN_MS_MAX = 10_000

export interface HttpsListenerOptions {
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  readonly pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'>
  readonly host: string
  readonly port: number
  readonly clock: Clock
  readonly log: Logger
}

export interface HttpsListener {
  readonly host: string
  readonly port: number
  /** Resolves after the last connection is closed. */
  stop(): Promise<void>
}

export async function listenHttps(options: HttpsListenerOptions): Promise<HttpsListener> {
  const { handle, pki, host, port, clock, log } = options
  const streams = new Set<ServerResponse>()
  let isStopping = false
  const server = createServer(
    {
      ...servingTlsOptions(pki),
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: 0,
      maxHeaderSize: HEADER_BYTES_MAX,
      noDelay: true,
    },
    (incoming, outgoing) => {
      if (isStopping) outgoing.setHeader('connection', 'close')
      void respond(incoming, outgoing)
    },
  )
  const websockets = createWebsocketWatches({ handle, requestOf, log })
  server.on('upgrade', (incoming, socket, head) => {
    websockets.upgrade(incoming, socket, head).catch((error) => {
      log.error({ err: error, path: incoming.url }, 'WebSocket upgrade failed')
      socket.destroy()
    })
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  server.on('tlsClientError', (error) => log.debug({ err: error }, 'TLS handshake failed'))

  async function respond(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      send(await handle(requestOf(incoming)), incoming, outgoing)
    } catch (error) {
      log.error({ err: error, path: incoming.url }, 'cannot send the response')
      outgoing.destroy()
    }
  }

  function send(response: ApiResponse, incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (outgoing.destroyed) return
    const headers = response.headers as Record<string, string | string[]>
    if (response.stream) {
      outgoing.writeHead(response.status, headers)
      outgoing.flushHeaders()
      if (incoming.method === 'HEAD') return void outgoing.end()
      streams.add(outgoing)
      outgoing.on('close', () => streams.delete(outgoing))
      response.stream(sinkOf(outgoing))
      if (isStopping) outgoing.end()
      return
    }
    const body = response.body ?? new Uint8Array()
    // An oversized body is not read to its end, so the connection cannot be reused.
    const closeHeader = response.status === 413 ? { connection: 'close' } : {}
    outgoing.writeHead(response.status, { ...headers, 'content-length': body.length, ...closeHeader })
    outgoing.end(incoming.method === 'HEAD' ? undefined : body)
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explainListenError(error, host, port)))
    server.listen(port, host, resolve)
  })
  return {
    host,
    port: (server.address() as AddressInfo).port,
    stop: () => {
      isStopping = true
      websockets.closeAll()
      return drain(server, streams, clock)
    },
  }
}

async function drain(server: Server, streams: Set<ServerResponse>, clock: Clock): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const stream of streams) stream.end()
  server.closeIdleConnections()
  const cancelTimer = clock.after(DRAIN_MS_MAX, () => server.closeAllConnections())
  const stopSweep = startInterval(clock, 50, () => server.closeIdleConnections())
  await closed
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

function requestOf(incoming: IncomingMessage): ApiRequest {
  const url = incoming.url ?? '/'
  const queryStart = url.indexOf('?')
  return {
    method: incoming.method ?? 'GET',
    path: queryStart < 0 ? url : url.slice(0, queryStart),
    query: queryStart < 0 ? NO_QUERY : new URLSearchParams(url.slice(queryStart + 1)),
    headers: incoming.headers as Record<string, string | undefined>,
    headerNames: () => Object.keys(incoming.headers),
    headerValues: (name) => incoming.headersDistinct[name] ?? [],
    clientCert: clientCertificateOf(incoming.socket as TLSSocket),
    readBody: () => readBody(incoming),
  }
}

function readBody(incoming: IncomingMessage): Promise<Uint8Array> {
  const declaredSize = Number(incoming.headers['content-length'] ?? 0)
  if (declaredSize > BODY_BYTES_MAX) return Promise.reject(bodyTooLarge(BODY_BYTES_MAX))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > BODY_BYTES_MAX) {
        incoming.pause()
        incoming.removeAllListeners('data')
        reject(bodyTooLarge(BODY_BYTES_MAX))
      } else chunks.push(chunk)
    })
    incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    // An incomplete body is a client error, so return 400, although the client may not receive it.
    incoming.on('error', (error) => reject(badRequest(`the body could not be read: ${error.message}`)))
    incoming.on('aborted', () => reject(badRequest('the client closed the connection before its request was complete')))
  })
}

function sinkOf(outgoing: ServerResponse): StreamSink {
  return {
    // An event may still arrive after the listener has ended the stream to stop.
    write: (chunk) => void (outgoing.writableEnded || outgoing.write(chunk)),
    get pendingBytes() {
      return outgoing.writableLength
    },
    onDrain: (run) => void (outgoing.writableNeedDrain ? outgoing.once('drain', run) : run()),
    end: () => void outgoing.end(),
    cut: () => void outgoing.destroy(),
    // Not the close event of the request, which is emitted as soon as its body has been read.
    onClose: (run) => void outgoing.once('close', run),
  }
}

function explainListenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
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
