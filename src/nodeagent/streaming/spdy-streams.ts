// Carries a command's streams over SPDY. The client opens one SPDY stream for each of them, with its type in the header
// `streamType`; the result is sent on the stream `error`. The connection is complete when all requested streams are open.
import type { Duplex } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import type { TerminalSize } from '../commands/terminal.ts'
import { type CommandStreams, parseTerminalSize, type StreamRequest } from './command-streams.ts'
import { type SpdyStream, serveSpdy } from './spdy/connection.ts'
import { finishWriting, textOf } from './websocket-streams.ts'

/** The protocol versions, most preferred first. */
export const SPDY_COMMAND_PROTOCOLS = ['v4.channel.k8s.io', 'v3.channel.k8s.io', 'v2.channel.k8s.io', 'channel.k8s.io']

/** Time for the client to open its streams. */
const OPEN_MS_MAX = 30_000
/** Time for the client to close the connection after it has received the result. */
const CLOSE_MS_MAX = 5_000
/** A longer resize message is truncated while it is incomplete, so that it cannot be parsed and has no effect. */
const RESIZE_CHARACTERS_MAX = 1_024

export interface UpgradedSocket {
  readonly socket: Duplex
  readonly head: Uint8Array
  readonly protocol: string
}

/** Resolves when the client has opened all streams. Throws if the connection ends or OPEN_MS_MAX passes before. */
export async function spdyStreams(
  { socket, head, protocol }: UpgradedSocket,
  request: StreamRequest,
  clock: Clock,
): Promise<CommandStreams> {
  const hasStatusDocument = protocol === 'v4.channel.k8s.io'
  const missingTypes = new Set(expectedTypes(request, protocol))
  const streams = new Map<string, SpdyStream>()
  let activityMs = clock.monotonicMs()
  let onOpened = () => {}
  const opened = new Promise<void>((resolve) => {
    onOpened = resolve
  })
  const connection = serveSpdy({
    socket,
    head,
    onStream(stream) {
      const type = stream.headers.get('streamtype') ?? ''
      if (!missingTypes.delete(type)) return false
      streams.set(type, stream)
      if (type !== 'stdin' && type !== 'resize') stream.resume() // the client sends no data on it
      if (missingTypes.size === 0) onOpened()
      return true
    },
    onActivity() {
      activityMs = clock.monotonicMs()
    },
  })
  const timeout = new AbortController()
  const problem = await Promise.race([
    opened.then(() => undefined),
    connection.ended.then(
      (error) => error?.message ?? 'the client closed the connection before it had opened all streams',
    ),
    clock.sleep(OPEN_MS_MAX, timeout.signal).then(
      () => 'timed out waiting for client to create streams',
      () => undefined,
    ),
  ])
  timeout.abort()
  if (problem !== undefined) {
    connection.destroy()
    throw new Error(problem)
  }
  const error = streams.get('error')!
  const outputs = { stdout: streams.get('stdout'), stderr: streams.get('stderr') }
  const closed = connection.ended.then(() => {})
  return {
    stdin: streams.get('stdin'),
    ...outputs,
    onResize: (listener) => void (streams.has('resize') && readSizes(streams.get('resize')!, listener)),
    async finish(result) {
      await Promise.all(Object.values(outputs).map((stream) => stream && finishWriting(stream)))
      const document = hasStatusDocument ? JSON.stringify(result.document) : textOf(result)
      if (document !== '') error.write(document)
      await finishWriting(error)
      streams.get('stdin')?.resume() // the client may still send input, and then closes the connection
      const cancelTimer = clock.after(CLOSE_MS_MAX, () => connection.destroy())
      await closed
      cancelTimer()
    },
    closed,
    destroy: () => connection.destroy(),
    lastActivityMs: () => activityMs,
  }
}

function expectedTypes({ stdin, stdout, stderr, tty }: StreamRequest, protocol: string): string[] {
  const hasResize = tty && /^v[34]\./.test(protocol)
  return [
    'error',
    ...(stdin ? ['stdin'] : []),
    ...(stdout ? ['stdout'] : []),
    ...(stderr && !tty ? ['stderr'] : []),
    ...(hasResize ? ['resize'] : []),
  ]
}

/** Reads one JSON document per line. */
function readSizes(stream: SpdyStream, listener: (size: TerminalSize) => void): void {
  let text = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n')
    text = lines.pop()!.slice(0, RESIZE_CHARACTERS_MAX)
    for (const line of lines) {
      const size = parseTerminalSize(line)
      if (size) listener(size)
    }
  })
}
