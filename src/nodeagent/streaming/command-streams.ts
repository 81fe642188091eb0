// The streams between a client and a command, for exec and attach. websocket-streams.ts and spdy-streams.ts implement them;
// remote-command.ts connects them to a process.
import type { Readable, Writable } from 'node:stream'
import type { TerminalSize } from '../commands/terminal.ts'

/** The requested streams. At least one of stdin, stdout and stderr is true. */
export interface StreamRequest {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

export interface CommandStreams {
  readonly stdin?: Readable
  readonly stdout?: Writable
  readonly stderr?: Writable
  onResize(listener: (size: TerminalSize) => void): void
  /** Sends the result after all output, and closes the connection. Resolves when it is closed. */
  finish(result: CommandResult): Promise<void>
  /** Resolves when the connection is closed for any reason. */
  readonly closed: Promise<void>
  /** Closes the connection immediately. */
  destroy(): void
  /** Returns the monotonic time at which the client last sent or received bytes. */
  lastActivityMs(): number
}

/** The result of a command. `document` is the Status sent on the error stream. */
export interface CommandResult {
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly document: object
}

export const successResult: CommandResult = {
  status: 'Success',
  document: { metadata: {}, status: 'Success' },
}

export function exitResult(code: number): CommandResult {
  if (code === 0) return successResult
  const message = `command terminated with non-zero exit code: exit status ${code}`
  const details = { causes: [{ reason: 'ExitCode', message: String(code) }] }
  const document = { metadata: {}, status: 'Failure', reason: 'NonZeroExitCode', message, details }
  return { status: 'Failure', message, document }
}

export function errorResult(cause: string): CommandResult {
  const message = `Internal error occurred: error executing command in container: ${cause}`
  const details = { causes: [{ message: `error executing command in container: ${cause}` }] }
  const document = { metadata: {}, status: 'Failure', reason: 'InternalError', code: 500, message, details }
  return { status: 'Failure', message, document }
}

const SIZE_MAX = 0xffff

/** Parses a client's message about a resized terminal. Returns undefined if the message is invalid. */
export function parseTerminalSize(text: string): TerminalSize | undefined {
  try {
    const { Width: columns, Height: rows } = JSON.parse(text) as { readonly Width?: unknown; readonly Height?: unknown }
    return isSize(columns) && isSize(rows) ? { columns, rows } : undefined
  } catch {
    return undefined
  }
}

const isSize = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= SIZE_MAX
