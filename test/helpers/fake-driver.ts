// Runs the fake CSI driver in its own process, which can be killed and restarted on the same socket and state.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { createFakeControl, type FakeControl } from '../../src/csi/fake/control-client.ts'
import { buildProgram } from './build-program.ts'

export interface RunningFakeDriver {
  /** `unix:///…/csi.sock` */
  readonly endpoint: string
  readonly control: FakeControl
  readonly pid: number
  /** Sends SIGTERM. Resolves when the process has exited. */
  stop(): Promise<void>
  /** Sends SIGKILL. Resolves when the process has exited. */
  kill(): Promise<void>
  /** Starts the process with its saved state if it is not running. Resolves when it is ready. */
  start(): Promise<void>
  /** Removes its saved state. Call while the process is not running. */
  loseState(): Promise<void>
  /** Resolves when the process has exited, for any reason. */
  whenExited(): Promise<void>
  /** Kills the process and removes its directory. */
  remove(): Promise<void>
}

/** Starts the driver. `flags` are flags of fake-driver.js other than --endpoint, --control and --state. */
export async function startFakeDriver({
  flags = [],
}: {
  readonly flags?: readonly string[]
} = {}): Promise<RunningFakeDriver> {
  const program = join(dirname(await realpath(await buildProgram())), 'fake-driver.js')
  const dir = await mkdtemp(join(tmpdir(), 'stowage-fake-'))
  const endpoint = `unix://${join(dir, 'csi.sock')}`
  const controlPath = join(dir, 'control.sock')
  const stateFile = join(dir, 'state.json')
  let child: ChildProcess | undefined

  const whenExited = async () => {
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const end = async (signal: NodeJS.Signals) => {
    child?.kill(signal)
    await whenExited()
  }
  const driver: RunningFakeDriver = {
    endpoint,
    control: createFakeControl(controlPath),
    get pid() {
      return child!.pid!
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async start() {
      if (child && child.exitCode === null && child.signalCode === null) return
      const args = [program, '--endpoint', endpoint, '--control', controlPath, '--state', stateFile, ...flags]
      const startedChild = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      child = startedChild
      let errors = ''
      startedChild.stderr.on('data', (bytes) => {
        errors += bytes
      })
      const [line] = await Promise.race([
        once(createInterface({ input: startedChild.stdout }), 'line'),
        once(startedChild, 'close').then(([code]) => [`exit ${code}`]),
      ])
      if (line !== 'ready') throw new Error(`The fake driver did not start (${line}): ${errors}`)
    },
    loseState: () => rm(stateFile, { force: true }),
    whenExited,
    async remove() {
      await end('SIGKILL')
      await rm(dir, { recursive: true, force: true })
    },
  }
  await driver.start().catch(async (error) => {
    await driver.remove()
    throw error
  })
  return driver
}
