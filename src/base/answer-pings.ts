// Answers the pings of a WebSocket client. The `ws` library answers every ping immediately, and queues pongs without a limit for
// a client that does not read. Servers therefore set `autoPong: false` and use this function.

/** The part of a `ws` WebSocket that is used here. */
interface PingedSocket {
  on(event: 'ping', listener: (data: Buffer) => void): unknown
  pong(data: Buffer, mask: boolean, done: () => void): void
  terminate(): void
}

/** Bytes of pongs that the client has not read. Beyond this the connection is closed. */
const PENDING_PONG_BYTES_MAX = 64 * 1024
/** The header of a frame with up to 125 bytes. */
const HEADER_BYTES = 2

export function answerPings(socket: PingedSocket): void {
  let pendingBytes = 0
  socket.on('ping', (data) => {
    const bytes = HEADER_BYTES + data.length
    if (pendingBytes + bytes > PENDING_PONG_BYTES_MAX) return socket.terminate()
    pendingBytes += bytes
    socket.pong(data, false, () => {
      pendingBytes -= bytes
    })
  })
}
