// Upgrades requests for /watch to WebSockets. The library is loaded with the first one.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket, WebSocketServer } from 'ws'
import { type ApiError, unavailable } from '../../api/status-error.ts'
import { answerPings } from '../../base/answer-pings.ts'
import { SECURITY_HEADERS } from '../http/security-headers.ts'

/** Maximum size of a frame that the page sends. */
const FRAME_BYTES_MAX = 64 * 1024
/** Further sockets are rejected with 503. Each tab has one. */
const SOCKETS_MAX = 128

export function createUpgrades() {
  let loading: Promise<WebSocketServer> | undefined
  const sockets = new Set<WebSocket>()

  const load = () => {
    loading ??= import('ws').then(
      ({ WebSocketServer }) =>
        new WebSocketServer({
          noServer: true,
          maxPayload: FRAME_BYTES_MAX,
          perMessageDeflate: false,
          autoPong: false,
        }),
    )
    return loading
  }

  return {
    async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket> {
      if (sockets.size >= SOCKETS_MAX) throw unavailable(`the console has ${SOCKETS_MAX} open tabs; close some`)
      const server = await load()
      return new Promise((resolve) => {
        server.handleUpgrade(incoming, socket, head, (webSocket) => {
          sockets.add(webSocket)
          answerPings(webSocket)
          webSocket.once('close', () => sockets.delete(webSocket))
          resolve(webSocket)
        })
      })
    },
    /** Closes all sockets with status 1001 (going away). */
    close(): void {
      for (const socket of sockets) {
        socket.close(1001, 'the console is shutting down')
        socket.terminate()
      }
    },
  }
}

/** Writes a plain HTTP response to the socket instead of upgrading it. */
export function rejectUpgrade(socket: Duplex, error: ApiError): void {
  const body = Buffer.from(JSON.stringify(error.toStatus()))
  const headers = { ...SECURITY_HEADERS, 'content-type': 'application/json', 'content-length': body.length }
  const lines = [
    `HTTP/1.1 ${error.code} Refused`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.end(body)
}
