// Runs a command for a client: copies its input and output with back-pressure in both directions, sends the result after the
// output, and ends the command when the client disconnects or is idle, or the agent stops.
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import type { ContainerProcess } from '../commands/exec-in-container.ts'
import type { TerminalSize } from '../commands/terminal.ts'
import { type CommandResult, type CommandStreams, errorResult, exitResult, successResult } from './command-streams.ts'

export interface RemoteCommand {
  readonly streams: CommandStreams
  /** `size` is the initial size of the terminal, if the client has sent one. */
  start(size: TerminalSize | undefined): Promise<ContainerProcess>
  readonly hasTerminal: boolean
  /** Whether the client receives the exit code. An attach session ends with success instead. */
  readonly reportsExitCode: boolean
  readonly clock: Clock
  /** Ends the session when it is aborted. */
  readonly signal: AbortSignal
}

/** A session that transfers no bytes in either direction is closed after this time. */
const IDLE_MS_MAX = 4 * 60 * 60 * 1_000
const IDLE_CHECK_INTERVAL_MS = 60_000
/**
 * After a command has exited, processes that it started may keep its output open. Their output is sent until it pauses for this
 * long.
 */
const OUTPUT_PAUSE_MS = 250
/** Time for the client to send the size of its terminal. Some clients never do. */
const FIRST_SIZE_MS_MAX = 500
/** Time for the client to receive the rest of the output and the result. */
const FINISH_MS_MAX = 60_000
/** The same when the agent stops or the session is idle. */
const STOP_FINISH_MS_MAX = 3_000
/** Time between SIGHUP and SIGKILL for a command that has not exited when its session ends. */
const KILL_DELAY_MS = 2_000

/** Resolves when the session has ended and the command has exited. */
export async function runRemoteCommand({
  streams,
  start,
  hasTerminal,
  reportsExitCode,
  clock,
  signal,
}: RemoteCommand): Promise<void> {
  const disconnected = streams.closed.then(() => 'gone' as const)
  let process: ContainerProcess
  try {
    const size = hasTerminal ? await waitForSize(streams, clock) : undefined
    process = await start(size)
    if (size) await process.resize(size)
  } catch (error) {
    return finish(streams, errorResult((error as Error).message), clock)
  }
  const end = new AbortController()
  const stop = () => end.abort()
  signal.addEventListener('abort', stop, { once: true })
  void watchIdle(streams, clock, end)
  const stopped = new Promise<'stopped'>((resolve) => {
    if (signal.aborted) resolve('stopped')
    else end.signal.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
  streams.onResize(runLatest((size: TerminalSize) => process.resize(size)))
  if (streams.stdin && process.stdin) copyInput(streams.stdin, process.stdin)
  else streams.stdin?.resume()
  const outputs = [
    copyOutput(process.stdout, streams.stdout),
    ...(process.stderr ? [copyOutput(process.stderr, streams.stderr)] : []),
  ]
  const finished = process.exitCode.then(async (code) => {
    await Promise.all(outputs.map((output) => output.drain(clock)))
    return code
  })
  const outcome = await Promise.race([finished, disconnected, stopped])
  signal.removeEventListener('abort', stop)
  if (typeof outcome === 'number') {
    end.abort()
    return finish(streams, reportsExitCode ? exitResult(outcome) : successResult, clock)
  }
  const killed = kill(process, clock)
  if (outcome === 'stopped') await finish(streams, stopResult(signal), clock, STOP_FINISH_MS_MAX)
  end.abort()
  await killed
}

/** Sends the result. A client that does not read the rest of the output is disconnected, so that the session ends. */
async function finish(
  streams: CommandStreams,
  result: CommandResult,
  clock: Clock,
  msMax = FINISH_MS_MAX,
): Promise<void> {
  const cancelTimer = clock.after(msMax, () => streams.destroy())
  await streams.finish(result)
  cancelTimer()
}

/** Runs one call at a time, then only the latest of the calls that arrived during it, because each starts a process. */
function runLatest<T>(run: (value: T) => Promise<void>): (value: T) => void {
  let next: { readonly value: T } | undefined
  let isRunning = false
  const runNext = async () => {
    isRunning = true
    while (next) {
      const { value } = next
      next = undefined
      await run(value).catch(() => {})
    }
    isRunning = false
  }
  return (value) => {
    next = { value }
    if (!isRunning) void runNext()
  }
}

/** Waits for the terminal size, which clients send first, so that the command starts with it. */
function waitForSize(streams: CommandStreams, clock: Clock): Promise<TerminalSize | undefined> {
  return new Promise((resolve) => {
    const cancelTimer = clock.after(FIRST_SIZE_MS_MAX, () => resolve(undefined))
    streams.onResize((size) => {
      cancelTimer()
      resolve(size)
    })
  })
}

const stopResult = (signal: AbortSignal): CommandResult =>
  errorResult(signal.aborted ? 'the node agent is shutting down' : `no data for ${IDLE_MS_MAX / 3_600_000} h`)

async function kill(process: ContainerProcess, clock: Clock): Promise<void> {
  process.stdout.destroy()
  process.stderr?.destroy()
  process.kill('SIGHUP')
  const cancelTimer = clock.after(KILL_DELAY_MS, () => process.kill('SIGKILL'))
  await process.exitCode
  cancelTimer()
}

async function watchIdle(streams: CommandStreams, clock: Clock, end: AbortController): Promise<void> {
  while (!end.signal.aborted) {
    await clock.sleep(IDLE_CHECK_INTERVAL_MS, end.signal).catch(() => {})
    if (clock.monotonicMs() - streams.lastActivityMs() > IDLE_MS_MAX) end.abort()
  }
}

function copyInput(source: Readable, target: Writable): void {
  target.on('error', () => source.resume()) // the command no longer reads its input
  target.on('close', () => source.resume())
  source.pipe(target)
}

/** Copies the output, or drops it if there is no target. `drain` resolves when the output has ended or pauses. */
function copyOutput(source: Readable, target: Writable | undefined) {
  let bytes = 0
  source.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  const ended = new Promise<void>((resolve) => {
    source.once('end', resolve)
    source.once('close', resolve)
    source.once('error', () => resolve())
  })
  if (target) source.pipe(target, { end: false })
  else source.resume()
  return {
    async drain(clock: Clock): Promise<void> {
      for (let previousBytes = -1; previousBytes !== bytes || target?.writableNeedDrain; ) {
        previousBytes = bytes
        const timeout = new AbortController()
        const hasEnded = await Promise.race([
          ended.then(() => true),
          clock.sleep(OUTPUT_PAUSE_MS, timeout.signal).then(
            () => false,
            () => false,
          ),
        ])
        timeout.abort()
        if (hasEnded) return
      }
      source.destroy()
    },
  }
}
