// Runs the driver under test as a child process, so that verify can kill and restart it.
import type { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { connectDriver, isUnimplemented } from '../csi/index.ts'
import { type ChildGroup, spawnGroup } from '../host/child-group.ts'
import type { DriverControl } from './check.ts'

export interface DriverProcess extends DriverControl {
  /** The last lines of the driver's output. */
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

export function createDriverProcess({ command, socket, clock, signal }: DriverProcessOptions): DriverProcess {
  let child: ChildGroup | undefined
  let exitReason: string | undefined
  let output = ''

  async function waitUntilReady(): Promise<void> {
    const driver = connectDriver({ address: socket, clock, log: silentLog, timeoutMs: PROBE_TIMEOUT_MS })
    const deadlineMs = clock.monotonicMs() + START_MS_MAX
    try {
      for (;;) {
        const problem = await driver.identity.probe({}, { signal }).then(
          ({ ready }) => (ready === false ? 'Probe reports that the driver is not ready' : undefined),
          (error: Error) => (isUnimplemented(error) ? undefined : error.message),
        )
        if (problem === undefined) return
        signal.throwIfAborted()
        if (exitReason !== undefined) throw startError(exitReason)
        if (clock.monotonicMs() > deadlineMs)
          throw startError(`was not ready within ${START_MS_MAX / 1_000} s (${problem})`)
        await clock.sleep(PROBE_INTERVAL_MS, signal)
      }
    } finally {
      driver.close()
    }
  }

  const startError = (reason: string) => {
    const lastOutput = output.trim()
    return new Error(
      `The driver ${reason}. Command: ${command}${lastOutput ? `\nLast output of the driver:\n${lastOutput}` : ''}`,
    )
  }

  const foreignError = ({ pid }: ChildGroup) =>
    new Error(
      'The driver runs as another user, so verify cannot kill and restart it. Run verify itself with sudo, or start the driver ' +
        `and pass its socket with --csi-address. End this driver with: sudo kill -- -${pid}. Command: ${command}`,
    )

  return {
    output: () => output,
    async start() {
      output = ''
      exitReason = undefined
      const startedChild = spawnGroup(command.replaceAll('{socket}', socket), {
        ...process.env,
        CSI_ENDPOINT: `unix://${socket}`,
      })
      child = startedChild
      for (const stream of [startedChild.stdout, startedChild.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output = (output + text).slice(-OUTPUT_CHARACTERS_MAX)
        })
      void startedChild.exit.then((reason) => {
        if (child === startedChild) exitReason = reason
      })
      await waitUntilReady()
      if (startedChild.isForbidden()) throw foreignError(startedChild)
    },
    async kill() {
      if (!child) return
      const killedChild = child
      child = undefined
      if (killedChild.signal('SIGKILL') !== 'forbidden') await killedChild.exit
      else killedChild.abandon()
    },
  }
}
