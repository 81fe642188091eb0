// Reads the output of one run of a container and writes its log. The container writes to named pipes, which it holds open itself, so
// it survives a restart of the agent: the next agent opens the pipes again. While no agent reads, the container waits
// when a pipe is full (64 KiB); it never gets SIGPIPE.
import { execFile } from 'node:child_process'
import { EventEmitter, setMaxListeners } from 'node:events'
import { constants, openSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { Clock } from '../../../base/clock.ts'
import { searchPath } from '../../../host/run.ts'
import type { RunFiles } from '../run-records.ts'
import { createLineSplitter, type OutputStream } from './log-line.ts'
import { type LogLimits, openLogWriter } from './log-writer.ts'

export interface LogCapture {
  /** Resolves when all output so far is in the log and the pipes have no more writers. */
  readonly ended: Promise<void>
  readonly isEnded: boolean
  /**
   * Must be called after the command has exited. Resolves when its output is in the log. Processes that outlive the command may
   * keep the pipes open; their output is still captured, but not waited for.
   */
  drain(): Promise<void>
  /** Calls the listener after each addition to the log, and at the end. Returns a function that removes it. */
  onChange(listener: () => void): () => void
  /** Calls the listener with the output from now on. It may pause the container by returning a promise. */
  onOutput(listener: OutputListener): () => void
  /** Stops reading. The pipes stay for the next agent. */
  close(): Promise<void>
}

export type OutputListener = (stream: OutputStream, chunk: Uint8Array) => Promise<void> | undefined

export interface CaptureOptions {
  readonly files: RunFiles
  readonly limits: LogLimits
  readonly clock: Clock
  /** Delays the caller so that all containers together stay below a rate. */
  readonly limitRate: (bytes: number) => Promise<void>
  onError(error: Error): void
}

const STREAMS: readonly OutputStream[] = ['stdout', 'stderr']
/** Time that processes which outlive the command may delay the end of its log. */
const DRAIN_MS_MAX = 200
/** Container users must be able to open /dev/stdout and /dev/stderr, which lead to the pipes. */
const PIPE_MODE = '666'

/** Creates the pipes of a run and opens them for a new process. The caller closes the files after the start. */
export async function createOutputPipes(files: RunFiles): Promise<{ stdout: FileHandle; stderr: FileHandle }> {
  await makePipes([files.stdout, files.stderr])
  const stdout = await open(files.stdout, 'r+')
  return { stdout, stderr: await open(files.stderr, 'r+') }
}

export async function makePipes(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => rm(path, { force: true })))
  await promisify(execFile)('mkfifo', ['-m', PIPE_MODE, ...paths], { cwd: '/', env: { PATH: searchPath() } })
}

/** Starts to read the pipes of a run. They must have a writer, or the capture ends at once. */
export async function captureOutput(options: CaptureOptions): Promise<LogCapture> {
  const { files, limits, clock, limitRate, onError } = options
  const writer = await openLogWriter(files.log, limits)
  const changes = new EventEmitter()
  setMaxListeners(0, changes)
  const outputListeners = new Set<OutputListener>()
  let lastWrite: Promise<void> = Promise.resolve()
  let isClosed = false
  let isEnded = false

  /** Serializes the writes of both streams. */
  function append(lines: Uint8Array): Promise<void> {
    lastWrite = lastWrite.then(async () => {
      await writer.append(lines).catch(onError)
      changes.emit('change')
    })
    return lastWrite
  }

  async function copy(stream: OutputStream, socket: Socket): Promise<void> {
    const splitter = createLineSplitter(stream)
    try {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        const lines = splitter.add(chunk, clock.nowMs())
        await limitRate(Math.max(chunk.length, lines.length))
        await Promise.all([append(lines), ...[...outputListeners].map((listener) => listener(stream, chunk))])
      }
    } catch (error) {
      if (!isClosed) onError(error as Error)
    }
    await append(splitter.end(clock.nowMs()))
  }

  const sockets = STREAMS.map((stream) => openPipe(files[stream]))
  const ended = Promise.all(sockets.map((socket, index) => copy(STREAMS[index]!, socket))).then(async () => {
    await writer.close()
    if (!isClosed) await Promise.all(STREAMS.map((stream) => rm(files[stream], { force: true }))) // complete
    isEnded = true
    changes.emit('change')
  })

  return {
    ended,
    get isEnded() {
      return isEnded
    },
    async drain() {
      const timeout = new AbortController()
      await Promise.race([ended, clock.sleep(DRAIN_MS_MAX, timeout.signal).catch(() => {})])
      timeout.abort()
      await lastWrite
    },
    onChange(listener) {
      changes.on('change', listener)
      return () => void changes.off('change', listener)
    },
    onOutput(listener) {
      outputListeners.add(listener)
      return () => void outputListeners.delete(listener)
    },
    async close() {
      isClosed = true
      for (const socket of sockets) socket.destroy()
      await ended
    },
  }
}

/** Opens the reading end without waiting for a writer. Unlike a file stream, a socket occupies no thread while it waits. */
function openPipe(path: string): Socket {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}
