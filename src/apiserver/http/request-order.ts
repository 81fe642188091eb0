// Runs the requests of a connection one after the other, and closes a connection on which too many requests wait.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection that may wait for the response to an earlier one. The next request closes the connection. */
const PIPELINED_REQUESTS_MAX = 16

/**
 * Returns a function that starts each request of a connection after the response to the previous one was sent, so that a
 * client that sends many requests and reads nothing occupies memory for one response only.
 */
export function createRequestOrder() {
  /** Number of waiting requests by connection. */
  const waitingBySocket = new WeakMap<Socket, number>()
  return ({ socket }: IncomingMessage, outgoing: ServerResponse, run: () => void): void => {
    // The HTTP server assigns the connection to one response at a time, and emits the event `socket` when it does.
    if (outgoing.socket) return void run()
    const waitingCount = waitingBySocket.get(socket) ?? 0
    if (waitingCount >= PIPELINED_REQUESTS_MAX) return void socket.destroy()
    waitingBySocket.set(socket, waitingCount + 1)
    outgoing.once('socket', () => {
      waitingBySocket.set(socket, waitingBySocket.get(socket)! - 1)
      run()
    })
  }
}
