// Identifies a process by its PID, its start time and the ID of the boot, because the kernel reuses PIDs. Signals a process only
// if it is the identified one.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

export interface ProcessIdentity {
  readonly pid: number
  /** Start time in clock ticks since boot. */
  readonly startTicks: string
  /** ID of the boot, as in /proc/sys/kernel/random/boot_id. */
  readonly bootId: string
}

/** Returns the start time of the process in clock ticks since boot, or '' if it does not exist or is a zombie. */
export async function readStartTicks(pid: number): Promise<string> {
  return parseStartTicks(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))
}

export async function identifyProcess(pid: number): Promise<ProcessIdentity> {
  return { pid, startTicks: await readStartTicks(pid), bootId: readBootId() }
}

/** Returns whether exactly this process runs. Reads synchronously, so that a caller can send a signal immediately. */
export function isRunning({ pid, startTicks, bootId }: ProcessIdentity): boolean {
  return (
    startTicks !== '' && bootId === readBootId() && parseStartTicks(readIfPresent(`/proc/${pid}/stat`)) === startTicks
  )
}

/** Sends the signal if exactly this process runs. Returns whether it was sent. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isRunning(identity)) return false
  try {
    process.kill(identity.pid, signal)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

const readBootId = () => readIfPresent('/proc/sys/kernel/random/boot_id').trim()

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function parseStartTicks(stat: string): string {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the process name in parentheses may contain spaces
  const [state = '', ticks = ''] = [fields[0], fields[19]]
  return state === 'Z' ? '' : ticks
}
