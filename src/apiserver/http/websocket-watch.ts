// Watches over WebSocket, which browsers use: the URL of the watch with an upgrade, one event per text frame.
// The request is handled like any other; only a response that is a stream is upgraded.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../base/log.ts'
import type { ApiRequest, ApiResponse, StreamSink } from './messages.ts'

export interface WebsocketOptions {
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  readonly requestOf: (incoming: IncomingMessage) => ApiRequest
  readonly log: Logger
}

/** Largest frame from a client, which has only pings and close frames to send. */
const CLIENT_FRAME_BYTES_MAX = 64 * 1024

export function createWebsocketWatches({ handle, requestOf, log }: WebsocketOptions) {
  // Imported on the first upgrade: most servers never get one.
  let accepting: Promise<import('ws').WebSocketServer> | undefined
  const open = new Set<import('ws').WebSocket>()

  const acceptor = () => {
    accepting ??= import('ws').then(
      ({ WebSocketServer }) =>
        new WebSocketServer({
          noServer: true,
          maxPayload: CLIENT_FRAME_BYTES_MAX,
          // The client requires one of the protocols it offered. The choice does not matter: all frames are JSON text.
          handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(TOKEN_PROTOCOL)) ?? false,
        }),
    )
    return accepting
  }

  async function upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const response = await handle(withProtocolToken(requestOf(incoming), incoming))
    if (!response.stream) return reject(socket, response)
    const server = await acceptor()
    if (socket.destroyed) return
    server.handleUpgrade(incoming, socket, head, (connection) => {
      open.add(connection)
      connection.on('close', () => open.delete(connection))
      connection.on('error', (error) => log.debug({ err: error }, 'WebSocket failed'))
      response.stream!(sinkOf(connection))
    })
  }

  return {
    upgrade,
    /** Closes all connections with status 1001 (going away). */
    closeAll(): void {
      for (const connection of open) connection.close(1001, 'the server is shutting down')
    },
  }
}

/** Browsers cannot set headers on an upgrade, so they send the token as the name of a protocol. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'

function withProtocolToken(request: ApiRequest, incoming: IncomingMessage): ApiRequest {
  if (request.headers.authorization) return request
  const offered = (incoming.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const coded = offered.find((name) => name.startsWith(TOKEN_PROTOCOL))?.slice(TOKEN_PROTOCOL.length)
  if (!coded) return request
  const token = Buffer.from(coded, 'base64url').toString('utf8')
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

/** Writes a plain HTTP response to the raw socket instead of the upgrade. */
function reject(socket: Duplex, { status, headers, body = new Uint8Array() }: ApiResponse): void {
  const code = status < 400 ? 400 : status // only a watch can be upgraded
  const lines = [
    `HTTP/1.1 ${code} Refused`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${[value].flat().join(', ')}`),
    `content-length: ${body.length}`,
    'connection: close',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.end(body)
}

function sinkOf(connection: import('ws').WebSocket): StreamSink {
  let waiting: (() => void)[] = []
  const sent = () => {
    if (waiting.length === 0 || connection.bufferedAmount > 0) return
    const drained = waiting
    waiting = []
    for (const run of drained) run()
  }
  return {
    write(chunk) {
      // A chunk is a number of complete events, one per line. Each becomes a frame.
      for (const line of Buffer.from(chunk).toString('utf8').split('\n')) if (line) connection.send(line, sent)
    },
    get pendingBytes() {
      return connection.bufferedAmount
    },
    onDrain(run) {
      waiting.push(run)
      sent()
    },
    end: () => connection.close(1000),
    cut: () => connection.terminate(),
    onClose: (run) => void connection.once('close', run),
  }
}
