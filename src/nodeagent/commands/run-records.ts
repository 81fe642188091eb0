// The records of one run of a container's command: files in the pod's directory, because the process may outlive the
// agent. The agent writes `started` and `killed`; the process writes `exit`; both write `pid` and `start`.
//   containers/<name>/<run>/started          wall-clock time before the start, and the restart delay after this run
//   containers/<name>/<run>/pid              PID and start time, to detect a reused PID
//   containers/<name>/<run>/start            `ok` once the command runs, or the reason why it cannot
//   containers/<name>/<run>/killed           why the agent ended the run, if it must be restarted whatever its exit code
//   containers/<name>/<run>/exit             exit code and wall-clock time
//   containers/<name>/<run>/termination-log  the termination message of the command
//   containers/<name>/<run>/stdout, stderr   named pipes for the output, while it is captured; stdin: for the input
//   containers/<name>/<run>/log              the output, in the log format of CRI
import { join } from 'node:path'
import { readStartTicks } from '../../host/process-identity.ts'
import type { NodeDisk } from '../disk/disk.ts'

export interface RunFiles {
  readonly directory: string
  readonly started: string
  readonly pid: string
  readonly start: string
  readonly killed: string
  readonly exit: string
  readonly terminationLog: string
  readonly log: string
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
}

export const runFiles = (directory: string): RunFiles => ({
  directory,
  started: join(directory, 'started'),
  pid: join(directory, 'pid'),
  start: join(directory, 'start'),
  killed: join(directory, 'killed'),
  exit: join(directory, 'exit'),
  terminationLog: join(directory, 'termination-log'),
  log: join(directory, 'log'),
  stdin: join(directory, 'stdin'),
  stdout: join(directory, 'stdout'),
  stderr: join(directory, 'stderr'),
})

interface RunTimes {
  readonly startedMs: number
  /** Delay between the end of this run and the next one. */
  readonly restartDelayMs: number
}

export type RunState =
  /** The process exists, but its mounts are not complete, so the command does not run yet. */
  | ({ readonly is: 'starting'; readonly pid: number } & RunTimes)
  | ({ readonly is: 'running'; readonly pid: number } & RunTimes)
  | EndedRunState

export interface EndedRunState extends RunTimes {
  readonly is: 'ended'
  readonly code: number
  /** Undefined if the process could not write it. */
  readonly endedMs?: number
  /** Whether the process ended without writing its exit code. */
  readonly isLost: boolean
  /** Whether the agent ended the run to start the container again. */
  readonly isKilled: boolean
  /** Why the command could not be started. */
  readonly startError?: string
}

/** Reported for a process that ended without writing its exit code: the exit code of SIGKILL. */
const LOST_CODE = 137
const STARTED_TEXT = 'ok'

/** Reads a run's state. Returns undefined if it was never started. */
export async function readRun(files: RunFiles, disk: NodeDisk): Promise<RunState | undefined> {
  const started = await disk.readText(files.started)
  if (started === undefined) return undefined
  const [startedMs = 0, restartDelayMs = 0] = parseNumbers(started)
  const times = { startedMs, restartDelayMs }
  const { pid = 0, startTicks = '' } = parsePid((await disk.readText(files.pid)) ?? '{}')
  // An agent of an earlier version did not create the file. Its commands run.
  const start = ((await disk.readText(files.start)) ?? STARTED_TEXT).trim()
  // If the start time is empty, the process ended before the agent could read it.
  const isAlive = startTicks !== '' && (await readStartTicks(pid)) === startTicks
  // Read after the check, because the process writes its exit code before it ends. The file is empty while it runs.
  const [code, endedMs] = parseNumbers((await disk.readText(files.exit)) ?? '')
  if (isAlive && code === undefined) return { is: start === STARTED_TEXT ? 'running' : 'starting', pid, ...times }
  const startError = start === STARTED_TEXT || start === '' ? {} : { startError: start }
  return {
    is: 'ended',
    code: code ?? LOST_CODE,
    ...(endedMs === undefined ? {} : { endedMs }),
    isLost: code === undefined,
    isKilled: (await disk.readText(files.killed)) !== undefined,
    ...startError,
    ...times,
  }
}

export const formatStarted = ({ startedMs, restartDelayMs }: RunTimes): string => `${startedMs} ${restartDelayMs}\n`

/** Returns the whole numbers at the start of the text. */
function parseNumbers(text: string): number[] {
  const numbers = text.trim().split(/\s+/).map(Number)
  const end = numbers.findIndex((number) => !Number.isSafeInteger(number))
  return text.trim() === '' ? [] : end < 0 ? numbers : numbers.slice(0, end)
}

export const formatPid = (pid: number, startTicks: string): string => `${JSON.stringify({ pid, startTicks })}\n`

/** Returns nothing for an invalid record. A process group is stopped by the negated PID, so 1 would stop all processes. */
function parsePid(text: string): { pid?: number; startTicks?: string } {
  let record: unknown
  try {
    record = JSON.parse(text)
  } catch {
    return {}
  }
  const { pid, startTicks } = (record ?? {}) as { readonly pid?: unknown; readonly startTicks?: unknown }
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1 || typeof startTicks !== 'string') return {}
  return { pid, startTicks }
}
