// A keep-alive HTTPS connection that sends prepared requests and parses just enough of the responses to count them. The
// HTTP client of Node.js takes longer per request than the server: the benchmarks would measure the client.
import { connect, type TLSSocket } from 'node:tls'

export interface Endpoint {
  readonly port: number
  /** PEM: the CA, and the client certificate with its key. */
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface ResponseSummary {
  readonly status: number
  readonly bodyBytes: number
}

export interface Connection {
  /** Sends one request; the next may follow after its response. */
  send(request: Uint8Array, onResponse: (response: ResponseSummary) => void): void
  /**
   * Sends a watch request; `onLines` receives the number of new lines. Resolves when the response headers arrive. Lines that
   * arrive together with the headers are not counted.
   */
  follow(request: Uint8Array, onLines: (count: number) => void): Promise<void>
  /** Like `follow`, but passes the text of each line. */
  read(request: Uint8Array, onLine: (line: string) => void): Promise<void>
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** The end of a chunked body. JSON text does not contain it. */
const LAST_CHUNK = '\r\n0\r\n\r\n'
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a

export async function openConnection(endpoint: Endpoint, onBroken: (error: Error) => void): Promise<Connection> {
  const { port, ca, cert, key } = endpoint
  const socket = connect({ host: '127.0.0.1', port, ca, cert, key })
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  let isClosing = false
  socket.on('error', onBroken)
  socket.on('close', () => isClosing || onBroken(new Error('the server closed a connection')))
  return {
    send: sendOn(socket),
    follow: (request, onLines) => followOn(socket, request, onLines),
    read: (request, onLine) => readOn(socket, request, onLine),
    close: () => {
      isClosing = true
      socket.destroy()
    },
  }
}

function sendOn(socket: TLSSocket): Connection['send'] {
  let onResponse: ((response: ResponseSummary) => void) | undefined
  let partialHead: Buffer | undefined // the beginning of an incomplete head
  let status = 0
  let bodyBytes = 0
  let missingBytes = -1 // of the body; negative before the head is complete, infinite for a chunked body
  let tail = '' // the last bytes of a chunked body

  const onData = (data: Buffer) => {
    let remainingBytes = data
    if (missingBytes < 0) {
      remainingBytes = partialHead ? Buffer.concat([partialHead, data]) : data
      const end = remainingBytes.indexOf(HEAD_END)
      if (end < 0) {
        partialHead = remainingBytes
        return
      }
      partialHead = undefined
      const head = remainingBytes.toString('latin1', 0, end)
      status = Number(head.slice(9, 12))
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
      bodyBytes = length === undefined ? 0 : Number(length)
      missingBytes = length === undefined ? Number.POSITIVE_INFINITY : bodyBytes
      remainingBytes = remainingBytes.subarray(end + HEAD_END.length)
    }
    if (missingBytes === Number.POSITIVE_INFINITY) {
      bodyBytes += remainingBytes.length
      tail = (tail + remainingBytes.toString('latin1', Math.max(0, remainingBytes.length - LAST_CHUNK.length))).slice(
        -LAST_CHUNK.length,
      )
      if (tail !== LAST_CHUNK) return
      tail = ''
    } else {
      missingBytes -= remainingBytes.length
      if (missingBytes > 0) return
    }
    missingBytes = -1
    onResponse?.({ status, bodyBytes })
  }

  return (request, callback) => {
    if (!onResponse) socket.on('data', onData)
    onResponse = callback
    socket.write(request)
  }
}

function followOn(socket: TLSSocket, request: Uint8Array, onLines: (count: number) => void): Promise<void> {
  let lastByte = 0
  return new Promise((resolve) => {
    socket.once('data', () => {
      socket.on('data', (data: Buffer) => {
        let count = 0
        // A line feed after a carriage return frames a chunk; any other ends an event.
        for (let position = data.indexOf(LINE_FEED); position >= 0; position = data.indexOf(LINE_FEED, position + 1)) {
          if ((position === 0 ? lastByte : data[position - 1]) !== CARRIAGE_RETURN) count++
        }
        lastByte = data[data.length - 1] ?? 0
        if (count > 0) onLines(count)
      })
      resolve()
    })
    socket.write(request)
  })
}

/** Passes on lines that start an event; the others frame chunks. The server sends each event in its own chunk. */
function readOn(socket: TLSSocket, request: Uint8Array, onLine: (line: string) => void): Promise<void> {
  let partialLine = ''
  return new Promise((resolve) => {
    socket.on('data', (data: Buffer) => {
      const lines = (partialLine + data.toString('latin1')).split('\n')
      partialLine = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('{')) onLine(line)
      resolve()
    })
    socket.write(request)
  })
}
