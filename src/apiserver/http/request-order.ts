// Runs the requests of a connection one after the other.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests that a client may send on one connection before it has received the response to the first of them. */
const PIPELINED_REQUESTS_MAX = 16

/**
 * Returns a function that starts each request of a connection after the response to the previous one was sent, so that a
 * client that sends many requests and reads nothing occupies memory for one response only.
 */
export function createRequestOrder() {
  const waitingBySocket = new Map<Socket, (() => void)[]>()
  return (incoming: IncomingMessage, outgoing: ServerResponse, run: () => void): void => {
    const { socket } = incoming
    const waiting = waitingBySocket.get(socket)
    outgoing.once('close', () => {
      const next = waitingBySocket.get(socket)?.shift()
      if (next) next()
      else waitingBySocket.delete(socket)
    })
    if (!waiting) {
      waitingBySocket.set(socket, [])
      run()
    } else if (waiting.length < PIPELINED_REQUESTS_MAX) waiting.push(run)
    else socket.destroy()
  }
}
