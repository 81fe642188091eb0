// Sends signals to all processes of a session: a shell with job control, or script(1), moves its children to other process
// groups, which a signal to one process group does not reach.
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Sends the signal to the processes of the session that this process started as its leader, and of the sessions that its direct
 * children lead. Synchronous, so that no PID is reused between reading and sending.
 */
export function signalSession(leader: number, signal: NodeJS.Signals): void {
  const processes = listProcesses()
  const sessions = new Set([leader])
  // script(1) stays in the session of the leader, and its child leads a second one.
  for (const { pid, parent, session } of processes) if (parent === leader && session === pid) sessions.add(pid)
  for (const { pid, session } of processes) if (sessions.has(session)) send(pid, signal)
}

interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly session: number
}

function listProcesses(): ProcessEntry[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((name) => {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      // The name in parentheses may contain spaces. The fields after it are state, parent, process group and session.
      const [, parent, , session] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return [{ pid: Number(name), parent: Number(parent), session: Number(session) }]
    } catch {
      return [] // it has already exited
    }
  })
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
