// Carries a command's streams over WebSocket. The first byte of each message is the channel; in the base64 protocols it is
// a digit and the rest is base64. A v5 client ends its stdin with the message FF 00; other clients can only close the
// connection.
import { Readable, Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import { answerPings } from '../../base/answer-pings.ts'
import type { Clock } from '../../base/clock.ts'
import type { TerminalSize } from '../commands/terminal.ts'
import { type CommandResult, type CommandStreams, parseTerminalSize, type StreamRequest } from './command-streams.ts'

const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const
const CLOSE_SIGNAL = 0xff
const NORMAL_CLOSURE = 1000
const PROTOCOL_ERROR = 1002
const STDIN_BYTES_MAX = 256 * 1024
const OUTPUT_BYTES_MAX = 64 * 1024
/** Time for the client to respond to the close frame. */
const CLOSE_MS_MAX = 5_000

/** The subprotocols, most preferred first. A client that requests none uses the first version of the protocol. */
export const COMMAND_PROTOCOLS = [
  'v5.channel.k8s.io',
  'v4.channel.k8s.io',
  'v4.base64.channel.k8s.io',
  'channel.k8s.io',
  'base64.channel.k8s.io',
] as const

export function websocketStreams(socket: WebSocket, request: StreamRequest, clock: Clock): CommandStreams {
  const isBase64 = socket.protocol.includes('base64')
  const hasCloseSignal = socket.protocol.startsWith('v5.')
  const hasStatusDocument = /^v[45]\./.test(socket.protocol)
  let resizeListener: (size: TerminalSize) => void = () => {}
  let activityMs = clock.monotonicMs()
  let isStdinEnded = false

  function send(channel: number, payload: Uint8Array, done?: (error?: Error | null) => void): void {
    const message = isBase64
      ? `${channel}${Buffer.from(payload).toString('base64')}`
      : Buffer.concat([Uint8Array.of(channel), payload])
    socket.send(message, { binary: !isBase64 }, (error) => {
      activityMs = clock.monotonicMs()
      done?.(error)
    })
  }
  const output = (channel: number): Writable => {
    const stream = new Writable({
      highWaterMark: OUTPUT_BYTES_MAX,
      write: (chunk: Buffer, _encoding, done) => send(channel, chunk, done),
    })
    stream.on('error', () => {}) // the close of the connection ends the command
    return stream
  }
  const stdin = request.stdin
    ? new Readable({ highWaterMark: STDIN_BYTES_MAX, read: () => void (socket.isPaused && socket.resume()) })
    : undefined
  const outputs = {
    stdout: request.stdout ? output(CHANNELS.stdout) : undefined,
    stderr: request.stderr && !request.tty ? output(CHANNELS.stderr) : undefined,
  }

  function receive(channel: number | undefined, payload: Buffer): void {
    if (channel === CHANNELS.stdin) {
      if (stdin && !stdin.destroyed && !isStdinEnded && !stdin.push(payload)) socket.pause()
      return
    }
    if (channel === CHANNELS.resize) {
      const size = parseTerminalSize(payload.toString('utf8'))
      if (size) resizeListener(size)
      return
    }
    if (channel === CLOSE_SIGNAL && hasCloseSignal) {
      if (payload.length !== 1) socket.close(PROTOCOL_ERROR, 'a close signal must have two bytes')
      else if (payload[0] === CHANNELS.stdin && !isStdinEnded) {
        isStdinEnded = true
        stdin?.push(null)
      }
    }
  }
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    activityMs = clock.monotonicMs()
    if (data.length === 0) return
    if (isBinary) receive(data[0], data.subarray(1))
    else receive(data[0]! - 0x30, Buffer.from(data.toString('latin1', 1), 'base64'))
  })
  socket.on('ping', () => {
    activityMs = clock.monotonicMs()
  })
  answerPings(socket)
  socket.on('error', () => {}) // followed by close
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      stdin?.destroy()
      resolve()
    })
  })
  // Clients wait for the first message before they consider a channel open.
  send(request.stdout ? CHANNELS.stdout : request.stderr ? CHANNELS.stderr : CHANNELS.error, new Uint8Array())

  return {
    stdin,
    ...outputs,
    onResize(listener) {
      resizeListener = listener
    },
    async finish(result) {
      await Promise.all(Object.values(outputs).map((stream) => stream && finishWriting(stream)))
      const document = hasStatusDocument ? JSON.stringify(result.document) : textOf(result)
      if (document !== '')
        await new Promise<void>((resolve) => send(CHANNELS.error, Buffer.from(document), () => resolve()))
      isStdinEnded = true // drop input, so that the client's response to the close is received
      socket.resume()
      socket.close(NORMAL_CLOSURE)
      const cancelTimer = clock.after(CLOSE_MS_MAX, () => socket.terminate())
      await closed
      cancelTimer()
    },
    closed,
    destroy: () => socket.terminate(),
    lastActivityMs: () => activityMs,
  }
}

/** Returns the result for protocols before v4, which send only the text of a failure. */
export const textOf = (result: CommandResult): string => (result.status === 'Success' ? '' : (result.message ?? ''))

/** Resolves when all bytes are written, or can no longer be written. */
export const finishWriting = (stream: Writable): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed || stream.writableFinished) return resolve()
    stream.once('close', resolve)
    stream.end(() => resolve())
  })
