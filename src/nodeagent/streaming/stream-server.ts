// The node agent's HTTPS listener, through which API servers reach the node's containers: logs, exec and attach. It serves
// the kubelet's paths (read-request.ts). Only the API server can use it: the listener requires its client certificate,
// issued by the cluster's CA. The API server has already authorized the user.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { TLSSocket } from 'node:tls'
import { WebSocketServer } from 'ws'
import type { Stored } from '../../api/kind.ts'
import { API_SERVER_CLIENT_NAME } from '../../api/kinds/node/node-certificates.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Containers } from '../commands/containers.ts'
import type { CommandStreams, StreamRequest } from './command-streams.ts'
import { NoLogError, openContainerLog } from './container-log.ts'
import { type AgentRequest, type PodName, readAgentRequest } from './read-request.ts'
import { runRemoteCommand } from './remote-command.ts'
import { SPDY_COMMAND_PROTOCOLS, spdyStreams } from './spdy-streams.ts'
import { COMMAND_PROTOCOLS, websocketStreams } from './websocket-streams.ts'

export interface StreamServerOptions {
  readonly host: string
  readonly port: number
  readonly tls: StreamTls
  readonly containers: Pick<Containers, 'exec' | 'attach' | 'findLog'>
  findPod(namespace: string, name: string): Readonly<Stored<Pod>> | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Default: SESSIONS_MAX. */
  readonly sessionsMax?: number
}

export interface StreamTls {
  /** PEM. */
  readonly cert: string
  readonly key: string
  /** The CA of the API server's certificate. */
  readonly ca: string
}

export interface StreamServer {
  readonly port: number
  /** Replaces the certificate for new connections. */
  setTls(tls: StreamTls): void
  /** Accepts no new sessions, ends the open ones, and resolves when their commands have exited. */
  stop(): Promise<void>
}

/** Maximum number of open sessions and logs of a node. Further requests are rejected with 429. */
const SESSIONS_MAX = 256
const HEADER_BYTES_MAX = 256 * 1024 // the command is part of the URL
const HEADERS_TIMEOUT_MS = 10_000
/** A larger message ends the session. Clients send at most 32 KiB. */
const MESSAGE_BYTES_MAX = 1024 * 1024
const RETRY_AFTER_SECONDS = 5

export async function startStreamServer(options: StreamServerOptions): Promise<StreamServer> {
  const { host, port, containers, clock, log } = options
  const sessionsMax = options.sessionsMax ?? SESSIONS_MAX
  const stop = new AbortController()
  const sessions = new Set<Promise<void>>()
  const server = createServer(
    {
      ...toTlsOptions(options.tls),
      handshakeTimeout: HEADERS_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      noDelay: true,
    },
    (incoming, outgoing) => void respond(incoming, outgoing),
  )
  server.maxConnections = 2 * sessionsMax
  const webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    autoPong: false, // websocket-streams.ts answers pings
    handleProtocols: (offered) => COMMAND_PROTOCOLS.find((name) => offered.has(name)) ?? false,
  })
  server.on('tlsClientError', (error) => log.debug({ reason: error.message }, 'TLS handshake with the agent failed'))
  server.on('clientError', (_error, socket) => void socket.destroy())
  server.on('upgrade', (incoming, socket, head) => {
    socket.on('error', () => socket.destroy())
    upgrade(incoming, socket, head).catch((error: Error) => {
      log.warn({ path: incoming.url?.split('?')[0], reason: error.message }, 'a session with a container failed')
      socket.destroy()
    })
  })

  function check(incoming: IncomingMessage): { request: AgentRequest } | Rejection {
    if (!isApiServer(incoming.socket as TLSSocket)) return reject(403, 'only the API server may use this node agent')
    const request = readAgentRequest(incoming.url ?? '/', clock.nowMs())
    if (!request) return reject(404, 'not found')
    if (request.is === 'invalid') return reject(400, request.message)
    if (stop.signal.aborted) return reject(503, 'the node agent is shutting down')
    if (sessions.size >= sessionsMax) {
      return reject(429, `this node has ${sessionsMax} open sessions, the maximum; close some, or try again later`)
    }
    return { request }
  }

  function findPod({ namespace, pod: name, uid }: PodName): Readonly<Stored<Pod>> | undefined {
    const pod = options.findPod(namespace, name)
    return pod && (uid === undefined || uid === pod.metadata.uid) ? pod : undefined
  }

  /** Counts the session until it ends. */
  function track(session: Promise<void>): Promise<void> {
    sessions.add(session)
    return session.finally(() => sessions.delete(session))
  }

  async function respond(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const checked = check(incoming)
    if ('rejection' in checked) return sendText(outgoing, checked.rejection)
    const { request } = checked
    if (request.is !== 'logs') {
      return sendText(outgoing, { status: 400, text: 'Upgrade request required' })
    }
    const pod = findPod(request)
    if (!pod) return sendText(outgoing, { status: 404, text: 'pod does not exist' })
    const end = new AbortController()
    outgoing.once('close', () => end.abort())
    const signal = AbortSignal.any([end.signal, stop.signal])
    await track(
      (async () => {
        const content = await openContainerLog(containers, pod, request, { clock, signal })
        outgoing.writeHead(200, { 'content-type': 'text/plain' })
        outgoing.flushHeaders()
        await pipeline(Readable.from(content, { objectMode: false }), outgoing)
      })(),
    ).catch((error: Error) => {
      if (error instanceof NoLogError) return sendText(outgoing, { status: 400, text: error.message })
      if (!signal.aborted) log.warn({ path: incoming.url?.split('?')[0], reason: error.message }, 'cannot send a log')
      if (outgoing.headersSent) outgoing.destroy()
      else sendText(outgoing, { status: 500, text: error.message })
    })
  }

  async function upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const checked = check(incoming)
    if ('rejection' in checked) return sendRejection(socket, checked.rejection)
    const { request } = checked
    if (request.is !== 'exec' && request.is !== 'attach') {
      return sendRejection(socket, { status: 400, text: 'this request cannot be upgraded' })
    }
    const pod = findPod(request)
    if (!pod) return sendRejection(socket, { status: 404, text: 'pod does not exist' })
    const log = await containers.findLog(pod, request.container, { previous: false })
    if (!log || (await log.hasEnded())) {
      return sendRejection(socket, { status: 500, text: `container not found (${JSON.stringify(request.container)})` })
    }
    if (socket.destroyed) return // the handshake would never end
    const acceptance = negotiate(incoming)
    if ('rejection' in acceptance) return sendRejection(socket, acceptance.rejection)
    const openStreams = async (): Promise<CommandStreams> => {
      if (acceptance.is === 'websocket') return acceptWebSocket(incoming, socket, head, request.streams)
      socket.write(switchingProtocols(acceptance.protocol))
      return spdyStreams({ socket, head, protocol: acceptance.protocol }, request.streams, clock)
    }
    await track(
      openStreams().then((streams) =>
        runRemoteCommand({
          streams,
          hasTerminal: request.streams.tty,
          start: (size) =>
            request.is === 'exec'
              ? containers.exec(pod, request.container, { ...request.streams, command: request.command, size })
              : containers.attach(pod, request.container, request.streams),
          reportsExitCode: request.is === 'exec',
          clock,
          signal: stop.signal,
        }),
      ),
    )
  }

  const acceptWebSocket = (incoming: IncomingMessage, socket: Duplex, head: Buffer, streams: StreamRequest) =>
    new Promise<CommandStreams>((resolve, reject) => {
      socket.once('close', () => reject(new Error('the connection was closed during the handshake')))
      webSockets.handleUpgrade(incoming, socket, head, (webSocket) =>
        resolve(websocketStreams(webSocket, streams, clock)),
      )
    })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    setTls: (tls) => server.setSecureContext(toTlsOptions(tls)),
    async stop() {
      stop.abort()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await Promise.allSettled(sessions)
      server.closeAllConnections()
      await closed
    },
  }
}

interface Rejection {
  readonly rejection: HttpText
}
interface HttpText {
  readonly status: number
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

const reject = (status: number, text: string): Rejection => ({
  rejection: { status, text, ...(status === 429 ? { headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } } : {}) },
})

const toTlsOptions = ({ cert, key, ca }: StreamTls) => ({
  cert,
  key,
  ca,
  requestCert: true,
  rejectUnauthorized: true,
  minVersion: 'TLSv1.2' as const,
})

/**
 * Compares the whole subject, because other clients of the cluster have certificates from the same CA. A subject with
 * further names belongs to another user.
 */
function isApiServer(socket: TLSSocket): boolean {
  if (!socket.authorized) return false
  return socket.getPeerX509Certificate()?.subject === `CN=${API_SERVER_CLIENT_NAME}`
}

type Acceptance = { readonly is: 'websocket' } | { readonly is: 'spdy'; readonly protocol: string } | Rejection

function negotiate({ headers, headersDistinct }: IncomingMessage): Acceptance {
  if (headers.upgrade?.toLowerCase() === 'websocket') {
    const offered = splitList(headersDistinct['sec-websocket-protocol'])
    if (offered.length === 0 || COMMAND_PROTOCOLS.some((name) => offered.includes(name))) return { is: 'websocket' }
    return reject(400, `none of the subprotocols ${offered.join(', ')} is supported: ${COMMAND_PROTOCOLS.join(', ')}`)
  }
  if (headers.upgrade?.toLowerCase() !== 'spdy/3.1') return reject(400, 'upgrade to WebSocket or SPDY/3.1 required')
  const offered = splitList(headersDistinct['x-stream-protocol-version'])
  if (offered.length === 0) {
    const count = Object.keys(headers).length
    return reject(
      400,
      `unable to upgrade: header X-Stream-Protocol-Version does not exist in request with ${count} headers`,
    )
  }
  const protocol = SPDY_COMMAND_PROTOCOLS.find((name) => offered.includes(name))
  if (protocol) return { is: 'spdy', protocol }
  const text = `unable to upgrade: unable to negotiate protocol: client supports [${offered.join(' ')}], server supports [${SPDY_COMMAND_PROTOCOLS.join(' ')}]`
  return {
    rejection: {
      status: 403,
      text,
      headers: { 'x-accepted-stream-protocol-versions': SPDY_COMMAND_PROTOCOLS.join(', ') },
    },
  }
}

const splitList = (values: readonly string[] = []): string[] =>
  values.flatMap((value) => value.split(',')).flatMap((value) => value.trim() || [])

const switchingProtocols = (protocol: string): string =>
  [
    'HTTP/1.1 101 Switching Protocols',
    'Connection: Upgrade',
    'Upgrade: SPDY/3.1',
    `X-Stream-Protocol-Version: ${protocol}`,
    '\r\n',
  ].join('\r\n')

function sendText(outgoing: ServerResponse, { status, text, headers }: HttpText): void {
  outgoing.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers })
  outgoing.end(text)
}

/** Writes a plain HTTP response to the socket instead of upgrading it. */
function sendRejection(socket: Duplex, { status, text, headers = {} }: HttpText): void {
  const body = Buffer.from(text)
  const lines = [
    `HTTP/1.1 ${status} Refused`,
    'content-type: text/plain; charset=utf-8',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
    'connection: close',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.end(body)
}
