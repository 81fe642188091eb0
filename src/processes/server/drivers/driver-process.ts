// Runs the command of a driver as a child process in its own process group: restarts it with backoff when it exits, and ends it
// with the server. A record of the process lets the next server end it if this one is killed (left-process.ts).
import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import type { Clock, Random } from '../../../base/clock.ts'
import { writePrivateFile } from '../../../base/files.ts'
import type { Logger } from '../../../base/log.ts'
import { removeStaleSocket } from '../../../csi/remove-stale-socket.ts'
import { identifyProcess } from '../../../host/process-identity.ts'
import { backoffMs } from '../../../runtime/backoff.ts'
import type { DriverLog } from './driver-log.ts'
import { endLeftProcess, SOCKET_VARIABLE } from './left-process.ts'

export interface DriverProcessOptions {
  /** Command line for the shell, without placeholders. */
  readonly command: string
  readonly socket: string
  /** The path of the socket without links, by which left-process.ts recognises the process. */
  readonly mark: string
  /** File for the process's record. */
  readonly recordFile: string
  readonly driverLog: DriverLog
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Called when the process has exited, or could not be started, with the reason. It is restarted after `afterMs`. */
  onExit(exit: { readonly reason: string; readonly afterMs: number }): void
}

export interface DriverProcess {
  /** Undefined while no process runs. */
  readonly pid: number | undefined
  /** Number of starts so far. */
  readonly starts: number
  /** Runs the command again and again until the signal is aborted. Resolves when the process has ended. */
  run(signal: AbortSignal): Promise<void>
}

const RESTART_BACKOFF = { baseMs: 500, maxMs: 30_000 }
/** After a run of this length, the next restart is fast again. */
const STABLE_MS = 60_000
/** Time between SIGTERM and SIGKILL. The stop of the server has a longer limit. */
const STOP_MS_MAX = 5_000

export function createDriverProcess(options: DriverProcessOptions): DriverProcess {
  const { command, socket, mark, recordFile, driverLog, clock, random, log, onExit } = options
  let child: ChildProcess | undefined
  let starts = 0

  /** Resolves with the reason of the exit, or with undefined if the signal ended the process. */
  async function runOnce(signal: AbortSignal): Promise<string | undefined> {
    await removeStaleSocket(socket)
    signal.throwIfAborted()
    driverLog.startRun()
    starts++
    await writePrivateFile(recordFile, '{}\n') // if this process is killed now, the next one searches for the driver
    const startedChild = spawn('/bin/sh', ['-c', replaceShell(command)], {
      env: { ...process.env, CSI_ENDPOINT: `unix://${socket}`, [SOCKET_VARIABLE]: mark },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // its own process group, which gets no Ctrl-C of the terminal
    })
    const exit = new Promise<string>((resolve) => {
      startedChild.once('error', (error) => resolve(`could not be started: ${error.message}`))
      startedChild.once('exit', (code, name) => resolve(name ? `was ended by ${name}` : `exited with code ${code}`))
    })
    if (startedChild.pid === undefined) return exit
    child = startedChild
    RUNNING_CHILDREN.add(startedChild)
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
      await endGroup(startedChild, exit)
      RUNNING_CHILDREN.delete(startedChild)
      child = undefined
      await rm(recordFile, { force: true })
    }
  }

  /** Ends the process and what it started. */
  async function endGroup(leader: ChildProcess, exit: Promise<unknown>): Promise<void> {
    if (leader.exitCode === null && leader.signalCode === null) {
      signalGroup(leader, 'SIGTERM')
      const limit = new AbortController()
      await Promise.race([exit, clock.sleep(STOP_MS_MAX, limit.signal).catch(() => {})])
      limit.abort()
    }
    signalGroup(leader, 'SIGKILL')
    await exit
  }

  return {
    get pid() {
      return child?.pid
    },
    get starts() {
      return starts
    },
    async run(signal) {
      await endLeftProcess({ recordFile, mark, clock, log })
      for (let failures = 0; !signal.aborted; ) {
        const startMs = clock.monotonicMs()
        const reason = await runOnce(signal).catch((error: Error) => (signal.aborted ? undefined : error.message))
        if (reason === undefined || signal.aborted) return
        failures = clock.monotonicMs() - startMs > STABLE_MS ? 0 : failures + 1
        const afterMs = Math.round(backoffMs(RESTART_BACKOFF, Math.max(0, failures - 1), random))
        onExit({ reason, afterMs })
        await clock.sleep(afterMs, signal).catch(() => {}) // rejects when the signal is aborted
      }
    },
  }
}

/** Makes the shell become the driver, so that its PID and exit code are those of the driver, if the command is a simple one. */
const replaceShell = (command: string): string =>
  /^[^\s=]+(\s|$)/.test(command) && !/[;&|<>()`\n]/.test(command) ? `exec ${command}` : command

/** How long to wait for the last output of a process that has exited: a process that it started may keep the pipe open. */
const LAST_OUTPUT_MS = 200

/** Children of all drivers. They are killed when this process exits without stopping them first. */
const RUNNING_CHILDREN = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of RUNNING_CHILDREN) signalGroup(child, 'SIGKILL')
})

/** The group exists as long as one of its processes does, so its number cannot belong to others while the leader was not reaped. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid!, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
