// Runs a driver's command as a child process in its own process group: restarts it with backoff when it exits, and ends it when
// the server stops. If the server is killed, the next server finds the process by its record (orphaned-process.ts).
import { rm } from 'node:fs/promises'
import type { Clock, Random } from '../../../base/clock.ts'
import { writePrivateFile } from '../../../base/files.ts'
import type { Logger } from '../../../base/log.ts'
import { removeStaleSocket } from '../../../csi/remove-stale-socket.ts'
import { type ChildGroup, spawnGroup } from '../../../host/child-group.ts'
import { identifyProcess } from '../../../host/process-identity.ts'
import { backoffMs } from '../../../runtime/backoff.ts'
import type { DriverLog } from './driver-log.ts'
import { endOrphanedProcess, SOCKET_VARIABLE } from './orphaned-process.ts'

export interface DriverProcessOptions {
  /** Command line for the shell, without placeholders. */
  readonly command: string
  readonly socket: string
  /** The socket's path with links resolved, by which orphaned-process.ts recognizes the process. */
  readonly mark: string
  /** File for the process's record. */
  readonly recordFile: string
  readonly driverLog: DriverLog
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Called with the reason when the process has exited or could not be started. The command is restarted after `afterMs`. */
  onExit(exit: { readonly reason: string; readonly afterMs: number }): void
}

export interface DriverProcess {
  /** Undefined while no process runs. */
  readonly pid: number | undefined
  /** Number of starts so far. */
  readonly starts: number
  /** Runs and restarts the command until the signal is aborted. Resolves when the process has ended. */
  run(signal: AbortSignal): Promise<void>
}

const RESTART_BACKOFF = { baseMs: 500, maxMs: 30_000 }
/** After a run longer than this, the backoff starts again at its minimum. */
const STABLE_RUN_MS_MIN = 60_000
/** Time between SIGTERM and SIGKILL. Shorter than the server's own shutdown limit. */
const STOP_MS_MAX = 5_000

export function createDriverProcess(options: DriverProcessOptions): DriverProcess {
  const { command, socket, mark, recordFile, driverLog, clock, random, log, onExit } = options
  let child: ChildGroup | undefined
  let starts = 0

  /** Resolves with the reason for the exit, or with undefined if the process was ended because the signal was aborted. */
  async function runOnce(signal: AbortSignal): Promise<string | undefined> {
    await removeStaleSocket(socket)
    signal.throwIfAborted()
    driverLog.startRun()
    starts++
    await writePrivateFile(recordFile, '{}\n') // if this process is killed now, the next server searches for the driver
    const startedChild = spawnGroup(replaceShell(command), {
      ...process.env,
      CSI_ENDPOINT: `unix://${socket}`,
      [SOCKET_VARIABLE]: mark,
    })
    const { exit } = startedChild
    if (startedChild.pid === undefined) return exit
    child = startedChild
    const outputs = [startedChild.stdout, startedChild.stderr].map((stream) =>
      driverLog
        .follow(stream)
        .catch((error: Error) => log.warn({ reason: error.message }, 'cannot write the log of a driver')),
    )
    try {
      await writePrivateFile(recordFile, `${JSON.stringify(await identifyProcess(startedChild.pid))}\n`)
      const stopped = new Promise<undefined>((resolve) => {
        if (signal.aborted) resolve(undefined)
        else signal.addEventListener('abort', () => resolve(undefined), { once: true })
      })
      const reason = await Promise.race([exit, stopped])
      if (reason !== undefined) await Promise.race([Promise.all(outputs), clock.sleep(LAST_OUTPUT_MS)])
      return reason
    } finally {
      const hasEnded = await endGroup(startedChild)
      child = undefined
      if (hasEnded) await rm(recordFile, { force: true })
    }
  }

  /** Ends the process group. If that fails, logs the reason and how to end it, and returns false. */
  async function endGroup(group: ChildGroup): Promise<boolean> {
    const isExited = async (limitMs: number): Promise<boolean> => {
      const limit = new AbortController()
      const late = clock.sleep(limitMs, limit.signal).then(
        () => false,
        () => false,
      )
      const hasExited = await Promise.race([group.exit.then(() => true), late])
      limit.abort()
      return hasExited
    }
    if (!(await isExited(0)) && group.signal('SIGTERM') === 'sent') await isExited(STOP_MS_MAX)
    const result = group.signal('SIGKILL')
    if (result !== 'forbidden' && (await isExited(STOP_MS_MAX))) return true
    if (await isExited(0)) return true
    const reason =
      result === 'forbidden'
        ? 'it runs as another user'
        : 'a process of it does not react to SIGKILL, or runs as another user'
    log.error(
      { pid: group.pid, command },
      `cannot end the driver: ${reason}. End it with: sudo kill -KILL -- -${group.pid}`,
    )
    group.abandon()
    return false
  }

  return {
    get pid() {
      return child?.pid
    },
    get starts() {
      return starts
    },
    async run(signal) {
      await endOrphanedProcess({ recordFile, mark, clock, log })
      for (let failures = 0; !signal.aborted; ) {
        const startMs = clock.monotonicMs()
        const reason = await runOnce(signal).catch((error: Error) => (signal.aborted ? undefined : error.message))
        if (reason === undefined || signal.aborted) return
        failures = clock.monotonicMs() - startMs > STABLE_RUN_MS_MIN ? 0 : failures + 1
        const afterMs = Math.round(backoffMs(RESTART_BACKOFF, Math.max(0, failures - 1), random))
        onExit({ reason, afterMs })
        await clock.sleep(afterMs, signal).catch(() => {}) // rejects when the signal is aborted
      }
    },
  }
}

/** Adds `exec` to a simple command, so that the PID and the exit code are those of the driver instead of the shell. */
const replaceShell = (command: string): string =>
  /^[^\s=]+(\s|$)/.test(command) && !/[;&|<>()`\n]/.test(command) ? `exec ${command}` : command

/** How long to wait for the last output of a process that has exited. Bounded, because its children may keep the pipe open. */
const LAST_OUTPUT_MS = 200
