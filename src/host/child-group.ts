// Runs a shell command as the leader of its own process group, so that the command and the processes that it starts can be
// ended together.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

export interface ChildGroup {
  /** Undefined if the process could not be started. */
  readonly pid: number | undefined
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves with the reason when the leader has exited or could not be started. */
  readonly exit: Promise<string>
  /** Sends the signal to all processes of the group. */
  signal(name: NodeJS.Signals): SignalResult
  /** Whether this process may not signal the group: all its processes belong to another user, e.g. because sudo(8) started them. */
  isForbidden(): boolean
  /** Lets this process exit while the group still runs, without killing the group. */
  abandon(): void
}

/** `forbidden`: see isForbidden. */
export type SignalResult = 'sent' | 'ended' | 'forbidden'

/** Groups that are killed when this process exits without ending them first. */
const runningGroups = new Set<ChildGroup>()
process.on('exit', () => {
  for (const group of runningGroups) group.signal('SIGKILL')
})

export function spawnGroup(command: string, env: Readonly<Record<string, string | undefined>>): ChildGroup {
  const child = spawn('/bin/sh', ['-c', command], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // its own process group, which does not receive Ctrl-C from the terminal
  })
  const exit = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', (code, name) => resolve(name ? `was ended by ${name}` : `exited with code ${code}`))
  })
  const group: ChildGroup = {
    pid: child.pid,
    stdout: child.stdout,
    stderr: child.stderr,
    exit,
    signal: (name) => signalGroup(child, name),
    isForbidden: () => signalGroup(child, 0) === 'forbidden',
    abandon() {
      runningGroups.delete(group)
      child.stdout.destroy()
      child.stderr.destroy()
      child.unref()
    },
  }
  if (child.pid !== undefined) {
    runningGroups.add(group)
    void exit.then(() => runningGroups.delete(group))
  }
  return group
}

/** The kernel does not reuse the number of a group while one of its processes exists. */
function signalGroup({ pid }: ChildProcess, name: NodeJS.Signals | 0): SignalResult {
  if (pid === undefined) return 'ended'
  try {
    process.kill(-pid, name)
    return 'sent'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return 'ended'
    if (code === 'EPERM') return 'forbidden'
    throw error
  }
}
