// The fake CSI driver in its own process: started, killed and started again on the same socket and state.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type FakeControl, fakeControl } from '../../src/csi/fake/control-client.ts'
import { buildProgram } from './build.ts'

export interface RunningFakeDriver {
  /** `unix:///…/csi.sock` */
  readonly endpoint: string
  readonly control: FakeControl
  readonly pid: number
  /** SIGTERM; resolves once the process has exited. */
  stop(): Promise<void>
  /** SIGKILL; resolves once the process has exited. Its volumes are kept. */
  kill(): Promise<void>
  /** Starts it again if it is down; resolves once it answers. */
  start(): Promise<void>
  /** Removes its volumes; call while it is down. */
  loseState(): Promise<void>
  /** Resolves when the process has exited, for any reason. */
  gone(): Promise<void>
  /** Kills it and removes its directory. */
  remove(): Promise<void>
}

/** Flags of fake-driver.js, without endpoint, control and state. */
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

  const gone = async () => {
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const end = async (signal: NodeJS.Signals) => {
    child?.kill(signal)
    await gone()
  }
  const driver: RunningFakeDriver = {
    endpoint,
    control: fakeControl(controlPath),
    get pid() {
      return child!.pid!
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async start() {
      if (child && child.exitCode === null && child.signalCode === null) return
      const args = [program, '--endpoint', endpoint, '--control', controlPath, '--state', stateFile, ...flags]
      const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      child = started
      let said = ''
      started.stderr.on('data', (bytes) => {
        said += bytes
      })
      const [word] = await Promise.race([
        once(createInterface({ input: started.stdout }), 'line'),
        once(started, 'close').then(([code]) => [`exit ${code}`]),
      ])
      if (word !== 'ready') throw new Error(`The fake driver did not start (${word}): ${said}`)
    },
    loseState: () => rm(stateFile, { force: true }),
    gone,
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
