// Runs the driver under test from a command, so that verify can kill it between two calls and start it again.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { connectDriver, isUnimplemented } from '../csi/index.ts'
import type { DriverControl } from './check.ts'

export interface DriverProcess extends DriverControl {
  /** The last lines that the driver wrote. */
  output(): string
}

export interface DriverProcessOptions {
  /** A command line for the shell. `{socket}` stands for the socket's path. */
  readonly command: string
  readonly socket: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The time in which a driver must respond after its start. */
const START_MS_MAX = 30_000
const PROBE_INTERVAL_MS = 20
const PROBE_TIMEOUT_MS = 1_000
/** Older output is dropped. */
const OUTPUT_CHARACTERS_MAX = 4_000

/** Children that end with this process even if it does not stop them. */
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) killGroup(child)
})

export function createDriverProcess({ command, socket, clock, signal }: DriverProcessOptions): DriverProcess {
  let child: ChildProcess | undefined
  let exit: Promise<string> = Promise.resolve('was not started')
  let exitReason: string | undefined
  let output = ''

  async function waitUntilReady(): Promise<void> {
    const driver = connectDriver({ address: socket, clock, log: silentLog, timeoutMs: PROBE_TIMEOUT_MS })
    const deadlineMs = clock.monotonicMs() + START_MS_MAX
    try {
      for (;;) {
        const problem = await driver.identity.probe({}, { signal }).then(
          ({ ready }) => (ready === false ? 'it reports that it is not ready' : undefined),
          (error: Error) => (isUnimplemented(error) ? undefined : error.message),
        )
        if (problem === undefined) return
        signal.throwIfAborted()
        if (exitReason !== undefined) throw startError(exitReason)
        if (clock.monotonicMs() > deadlineMs)
          throw startError(`did not respond within ${START_MS_MAX / 1_000} s (${problem})`)
        await clock.sleep(PROBE_INTERVAL_MS, signal)
      }
    } finally {
      driver.close()
    }
  }

  const startError = (reason: string) => {
    const lastOutput = output.trim()
    return new Error(
      `The driver ${reason}. Command: ${command}${lastOutput ? `\nIts last output:\n${lastOutput}` : ''}`,
    )
  }

  return {
    output: () => output,
    async start() {
      output = ''
      exitReason = undefined
      const startedChild = spawn('/bin/sh', ['-c', command.replaceAll('{socket}', socket)], {
        env: { ...process.env, CSI_ENDPOINT: `unix://${socket}` },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true, // its own process group, which Ctrl-C of the terminal does not reach
      })
      child = startedChild
      children.add(startedChild)
      for (const stream of [startedChild.stdout, startedChild.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output = (output + text).slice(-OUTPUT_CHARACTERS_MAX)
        })
      exit = new Promise((resolve) => {
        startedChild.once('error', (error) => resolve(`could not be started: ${error.message}`))
        startedChild.once('exit', (code, name) => resolve(name ? `was ended by ${name}` : `exited with code ${code}`))
      })
      void exit.then((reason) => {
        if (child === startedChild) exitReason = reason
        children.delete(startedChild)
      })
      await waitUntilReady()
    },
    async kill() {
      if (!child) return
      killGroup(child)
      await exit
      child = undefined
    },
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
