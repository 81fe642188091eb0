// Watches over WebSocket, as browsers open them: the same URL with an upgrade, one event per text frame.
// The request passes the same path as any other; only an answer that streams is upgraded.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../base/log.ts'
import type { StreamSink } from '../verbs/watch.ts'
import type { ApiAnswer, ApiRequest } from './exchange.ts'

export interface WebsocketOptions {
  readonly handle: (request: ApiRequest) => Promise<ApiAnswer>
  readonly requestOf: (incoming: IncomingMessage) => ApiRequest
  readonly log: Logger
}

/** What a client may send: pings and close frames, never data worth more than this. */
const CLIENT_FRAME_BYTES_MAX = 64 * 1024

export function createWebsocketWatches({ handle, requestOf, log }: WebsocketOptions) {
  // Loaded with the first upgrade: most servers never see one.
  let accepting: Promise<import('ws').WebSocketServer> | undefined
  const open = new Set<import('ws').WebSocket>()

  const acceptor = () => {
    accepting ??= import('ws').then(
      ({ WebSocketServer }) =>
        new WebSocketServer({
          noServer: true,
          maxPayload: CLIENT_FRAME_BYTES_MAX,
          // Clients insist on one of the protocols they offered; all of ours send JSON text.
          handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(TOKEN_PROTOCOL)) ?? false,
        }),
    )
    return accepting
  }

  async function upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const answer = await handle(withProtocolToken(requestOf(incoming), incoming))
    if (!answer.stream) return refuse(socket, answer)
    const server = await acceptor()
    if (socket.destroyed) return
    server.handleUpgrade(incoming, socket, head, (connection) => {
      open.add(connection)
      connection.on('close', () => open.delete(connection))
      connection.on('error', (error) => log.debug({ err: error }, 'websocket failed'))
      answer.stream!(sinkOf(connection))
    })
  }

  return {
    upgrade,
    /** Tells every client that the server is going. */
    closeAll(): void {
      for (const connection of open) connection.close(1001, 'the server is shutting down')
    },
  }
}

/** Browsers cannot set headers on an upgrade; they offer the token as a protocol name instead. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'

function withProtocolToken(request: ApiRequest, incoming: IncomingMessage): ApiRequest {
  if (request.headers.authorization) return request
  const offered = (incoming.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())
  const coded = offered.find((name) => name.startsWith(TOKEN_PROTOCOL))?.slice(TOKEN_PROTOCOL.length)
  if (!coded) return request
  const token = Buffer.from(coded, 'base64url').toString('utf8')
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

/** A plain HTTP answer on the raw socket, since the upgrade will not happen. */
function refuse(socket: Duplex, { status, headers, body = new Uint8Array() }: ApiAnswer): void {
  const code = status < 400 ? 400 : status // an answer that is no stream was not asked for this way
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
      // A chunk is whole events, one per line; each becomes a frame of its own.
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
