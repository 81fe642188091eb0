// One run of a container's command, as files in the pod's directory: the process outlives the agent, so what is known of
// it must too. The process itself writes how it ended.
//   containers/<name>/<run>/started  when it was about to be started, by the wall clock
//   containers/<name>/<run>/pid      its number and start time, so that a number used again is not taken for it
//   containers/<name>/<run>/exit     its exit code, once it has ended
//   containers/<name>/<run>/log      what it printed
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

/** Killed with its machine, or before it could say how it ended: the code of a process ended by SIGKILL. */
const LOST_CODE = 137

/** Undefined: it was not started, and nobody was about to. */
export async function readRun(files: RunFiles, disk: NodeDisk): Promise<RunState | undefined> {
  const started = await disk.readText(files.started)
  if (started === undefined) return undefined
  const startedMs = Number.parseInt(started, 10) || 0
  const { pid = 0, startTicks = '' } = parse((await disk.readText(files.pid)) ?? '{}')
  const exit = await disk.readText(files.exit)
  const code = exit === undefined ? Number.NaN : Number.parseInt(exit, 10) // empty while it runs
  if (!Number.isNaN(code)) return { is: 'ended', code, startedMs, isLost: false }
  // Without a start time it had ended before anyone could look: there are machines where nothing may be launched at all.
  if (pid > 0 && startTicks !== '' && (await startTicksOf(pid)) === startTicks) return { is: 'running', pid, startedMs }
  return { is: 'ended', code: LOST_CODE, startedMs, isLost: true }
}

export const formatPid = (pid: number, startTicks: string): string => `${JSON.stringify({ pid, startTicks })}\n`

function parse(text: string): { pid?: number; startTicks?: string } {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** When the process was started, in the kernel's count; '' if there is no such process any more. */
export async function startTicksOf(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ') // the name before may hold anything
  const [state = '', ticks = ''] = [fields[0], fields[19]]
  return state === 'Z' ? '' : ticks
}
