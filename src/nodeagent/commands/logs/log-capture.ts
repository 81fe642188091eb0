// Reads the output of one container run and writes its log. The container writes to named pipes and holds them open itself,
// so it survives a restart of the agent: the next agent opens the pipes again. While no agent reads, the container blocks
// when a pipe is full (64 KiB); it never receives SIGPIPE.
import { execFile } from 'node:child_process'
import { EventEmitter, setMaxListeners } from 'node:events'
import { constants, openSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import type { Clock } from '../../../base/clock.ts'
import { searchPath } from '../../../host/run.ts'
import type { RunFiles } from '../run-records.ts'
import { createLineSplitter, type LineSplitter, type OutputStream } from './log-line.ts'
import { type LogLimits, openLogWriter } from './log-writer.ts'

export interface LogCapture {
  /** Resolves when the pipes have no more writers and all output is in the log, or after close(). */
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
const PIPE_BYTES = 64 * 1024
/** Turns of the event loop without output after which the pipes are empty. */
const IDLE_TURNS = 3
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

/** Starts to read the pipes of a run. They must have a writer, or the capture ends immediately. */
export async function captureOutput(options: CaptureOptions): Promise<LogCapture> {
  const { files, limits, clock, limitRate, onError } = options
  const writer = await openLogWriter(files.log, limits)
  const changes = new EventEmitter()
  setMaxListeners(0, changes)
  const outputListeners = new Set<OutputListener>()
  let lastWrite: Promise<void> = Promise.resolve()
  const copies = new Set<Promise<void>>() // of chunks that are received, but not yet in the log
  let receivedBytes = 0
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

  async function copyChunk(stream: OutputStream, splitter: LineSplitter, chunk: Buffer): Promise<void> {
    const lines = splitter.add(chunk, clock.nowMs())
    await limitRate(Math.max(chunk.length, lines.length))
    await Promise.all([append(lines), ...[...outputListeners].map((listener) => listener(stream, chunk))])
  }

  async function copy(stream: OutputStream, socket: Socket): Promise<void> {
    const splitter = createLineSplitter(stream)
    try {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        receivedBytes += chunk.length
        const copying = copyChunk(stream, splitter, chunk)
        copies.add(copying)
        await copying.finally(() => copies.delete(copying))
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

  /** Waits until the promise settles, but not for longer than DRAIN_MS_MAX. Returns whether it has settled. */
  async function waitBriefly(promise: Promise<unknown>): Promise<boolean> {
    const timeout = new AbortController()
    const sleep = clock.sleep(DRAIN_MS_MAX, timeout.signal).then(
      () => false,
      () => false,
    )
    const hasSettled = await Promise.race([promise.then(() => true), sleep])
    timeout.abort()
    return hasSettled
  }

  /**
   * Reads until the pipes are empty. Bounded by the size of the pipes, because other processes may go on writing, and by the
   * time that a client attached to the container may take for its output.
   */
  async function readAvailable(): Promise<void> {
    const endBytes = receivedBytes + PIPE_BYTES * STREAMS.length
    for (let idleTurns = 0; idleTurns < IDLE_TURNS && !isEnded && receivedBytes < endBytes; idleTurns++) {
      const oldBytes = receivedBytes
      if (copies.size > 0 && !(await waitBriefly(Promise.allSettled([...copies])))) return
      await nextTurn()
      if (receivedBytes !== oldBytes) idleTurns = -1
    }
  }

  return {
    ended,
    get isEnded() {
      return isEnded
    },
    async drain() {
      // On a busy machine the time can pass before the agent has read the pipes.
      if (!(await waitBriefly(ended))) await readAvailable()
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

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Opens the reading end without waiting for a writer. Unlike a file stream, a socket occupies no thread while it waits. */
function openPipe(path: string): Socket {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}
