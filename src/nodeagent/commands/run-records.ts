// The records of one run of a container's command: files in the directory of the pod, because the process may outlive the
// agent. host-containers.ts writes the start time; the process writes its exit code; both write the PID.
//   containers/<name>/<run>/started  wall-clock time before the start
//   containers/<name>/<run>/pid      PID and start time, to detect a reused PID
//   containers/<name>/<run>/exit     exit code
//   containers/<name>/<run>/log      stdout and stderr
import { join } from 'node:path'
import { startTicksOf } from '../../host/process-identity.ts'
import type { NodeDisk } from '../disk/disk.ts'

export interface RunFiles {
  readonly directory: string
  readonly started: string
  readonly pid: string
  readonly exit: string
  readonly log: string
}

export const runFiles = (directory: string): RunFiles => ({
  directory,
  started: join(directory, 'started'),
  pid: join(directory, 'pid'),
  exit: join(directory, 'exit'),
  log: join(directory, 'log'),
})

export type RunState =
  | { readonly is: 'running'; readonly pid: number; readonly startedMs: number }
  | { readonly is: 'ended'; readonly code: number; readonly startedMs: number; readonly isLost: boolean }

/** Reported for a process that ended without writing its exit code: the exit code of SIGKILL. */
const LOST_CODE = 137

/** Reads the state of a run. Returns undefined if it was never started. */
export async function readRun(files: RunFiles, disk: NodeDisk): Promise<RunState | undefined> {
  const started = await disk.readText(files.started)
  if (started === undefined) return undefined
  const startedMs = Number.parseInt(started, 10) || 0
  const { pid = 0, startTicks = '' } = parsePid((await disk.readText(files.pid)) ?? '{}')
  const exit = await disk.readText(files.exit)
  const code = exit === undefined ? Number.NaN : Number.parseInt(exit, 10) // empty while the process runs
  if (!Number.isNaN(code)) return { is: 'ended', code, startedMs, isLost: false }
  // If the start time is empty, the process ended before the agent could read it.
  if (pid > 0 && startTicks !== '' && (await startTicksOf(pid)) === startTicks) return { is: 'running', pid, startedMs }
  return { is: 'ended', code: LOST_CODE, startedMs, isLost: true }
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
