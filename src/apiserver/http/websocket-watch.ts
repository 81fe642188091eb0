// Serves requests to upgrade a connection: watches over WebSocket, which browsers use, with one event per text frame, and
// connections to containers, which the response takes over. The request is handled like any other.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { answerPings } from '../../base/answer-pings.ts'
import type { Logger } from '../../base/log.ts'
import type { ApiRequest, ApiResponse, StreamSink } from './messages.ts'
import type { PendingBytes } from './pending-bytes.ts'

export interface WebsocketOptions {
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  readonly requestOf: (incoming: IncomingMessage) => ApiRequest
  readonly pendingBytes: PendingBytes
  readonly log: Logger
}

/** Maximum size of a frame that a client sends. */
const CLIENT_FRAME_BYTES_MAX = 64 * 1024

export function createWebsocketWatches({ handle, requestOf, pendingBytes, log }: WebsocketOptions) {
  // Imported on the first upgrade.
  let webSocketServer: Promise<import('ws').WebSocketServer> | undefined
  const connections = new Set<import('ws').WebSocket>()
  const tunnels = new Set<Duplex>()

  const loadWebSocketServer = () => {
    webSocketServer ??= import('ws').then(
      ({ WebSocketServer }) =>
        new WebSocketServer({
          noServer: true,
          maxPayload: CLIENT_FRAME_BYTES_MAX,
          autoPong: false,
          // The server must select one of the requested subprotocols. All frames are JSON text, so any of them will do.
          handleProtocols: (protocols) => [...protocols].find((name) => !name.startsWith(TOKEN_PROTOCOL)) ?? false,
        }),
    )
    return webSocketServer
  }

  async function upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const request = withoutProtobuf(withProtocolToken(requestOf(incoming), incoming))
    const response = await handle(request)
    const { seats } = response
    if (seats) socket.once('close', () => seats.release())
    if (response.tunnel) return openTunnel(socket, head, response, tunnels)
    if (!response.stream) return sendRejection(socket, response)
    const server = await loadWebSocketServer()
    if (socket.destroyed) return
    server.handleUpgrade(incoming, socket, head, (connection) => {
      connections.add(connection)
      answerPings(connection)
      connection.on('close', () => connections.delete(connection))
      connection.on('error', (error) => log.debug({ err: error }, 'WebSocket failed'))
      response.stream!(sinkOf(connection, pendingBytes, request.userName ?? ''), seats)
    })
  }

  return {
    upgrade,
    /** Closes all watches with status 1001 (going away), and destroys the tunnels. */
    closeAll(): void {
      for (const tunnel of tunnels) tunnel.destroy()
      for (const connection of connections) connection.close(1001, 'the server is shutting down')
    },
  }
}

/** Completes an upgrade and passes the connection to the tunnel of the response. */
function openTunnel(socket: Duplex, head: Buffer, response: ApiResponse, tunnels: Set<Duplex>): void {
  const { status, headers, tunnel } = response
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`)
  socket.write(`HTTP/1.1 ${status} Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
  tunnels.add(socket)
  socket.once('close', () => tunnels.delete(socket))
  tunnel!(socket, head)
}

/** Prefix of the subprotocol that contains the token, because browsers cannot set headers on an upgrade. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'

/** Removes protobuf from the accepted types, because all frames are JSON text. */
function withoutProtobuf(request: ApiRequest): ApiRequest {
  const { accept } = request.headers
  if (!accept?.includes(PROTOBUF_MEDIA)) return request
  const clauses = accept.split(',').filter((clause) => !clause.includes(PROTOBUF_MEDIA))
  return { ...request, headers: { ...request.headers, accept: clauses.join(',') } }
}

function withProtocolToken(request: ApiRequest, incoming: IncomingMessage): ApiRequest {
  if (request.headers.authorization) return request
  const protocols = (incoming.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const encodedToken = protocols.find((name) => name.startsWith(TOKEN_PROTOCOL))?.slice(TOKEN_PROTOCOL.length)
  if (!encodedToken) return request
  const token = Buffer.from(encodedToken, 'base64url').toString('utf8')
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

/** Writes a plain HTTP response to the socket instead of upgrading it. */
function sendRejection(socket: Duplex, { status, headers, body = new Uint8Array() }: ApiResponse): void {
  const code = status < 400 ? 400 : status // the request succeeded, but its response cannot be upgraded
  const lines = [
    `HTTP/1.1 ${code} Refused`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`),
    `content-length: ${body.length}`,
    'connection: close',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.end(body)
}

function sinkOf(connection: import('ws').WebSocket, pendingBytes: PendingBytes, user: string): StreamSink {
  let drainCallbacks: (() => void)[] = []
  const closable = { destroy: () => connection.terminate() }
  connection.once('close', () => pendingBytes.remove(closable))
  const runIfDrained = () => {
    if (connection.bufferedAmount > 0) return
    pendingBytes.remove(closable)
    if (drainCallbacks.length === 0) return
    const callbacks = drainCallbacks
    drainCallbacks = []
    for (const run of callbacks) run()
  }
  return {
    write(chunk) {
      // A chunk contains complete events, one per line. Each event becomes a frame.
      for (const line of Buffer.from(chunk).toString('utf8').split('\n')) if (line) connection.send(line, runIfDrained)
      if (connection.bufferedAmount > 0) pendingBytes.update(closable, connection.bufferedAmount, user)
    },
    get pendingBytes() {
      return connection.bufferedAmount
    },
    onDrain(run) {
      drainCallbacks.push(run)
      runIfDrained()
    },
    end: () => connection.close(1000),
    cut: () => connection.terminate(),
    onClose: (run) => void connection.once('close', run),
  }
}
