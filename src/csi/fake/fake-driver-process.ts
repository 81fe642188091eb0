// Runs the fake driver as a separate process on sockets. With --state, the changes of a call are written to a file before the
// call returns, so that a process that restarts after a kill has the same volumes. Without it, the driver starts empty.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { serveDriver } from '../serve.ts'
import { serveControl } from './control-server.ts'
import { createFakeDriver } from './fake-driver.ts'
import { type FakeProcessFlags, readFlags } from './flags.ts'
import type { FakeTargets } from './model.ts'
import { emptyState, type FakeState } from './state.ts'

try {
  const flags = readFlags(process.argv.slice(2))
  if ('help' in flags) process.stdout.write(flags.help)
  else await main(flags)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}

async function main(flags: FakeProcessFlags): Promise<void> {
  const { endpoint, controlSocket, stateFile, nodeId, makesTargets, settings } = flags
  const clock = systemClock()
  const crash = () => process.kill(process.pid, 'SIGKILL')
  const fake = createFakeDriver({
    clock,
    settings,
    state: stateFile ? readState(stateFile) : emptyState(),
    onCrash: crash,
    ...(makesTargets ? { targets: createTargets() } : {}),
    persist: stateFile ? (state) => writeState(stateFile, state) : undefined,
  })
  const controlServer = controlSocket ? await serveControl(controlSocket, fake, crash) : undefined
  const { identity, controller } = fake
  const driver = await serveDriver({ endpoint, identity, controller, node: fake.node(nodeId), clock, log: silentLog })
  process.stdout.write('ready\n')

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, async () => {
      controlServer?.stop()
      fake.script.release()
      await driver.stop()
      process.exit(0)
    })
  }
}

function createTargets(): FakeTargets {
  return {
    make: (path) => void mkdirSync(path, { recursive: true }),
    remove: (path) => rmSync(path, { recursive: true, force: true }),
  }
}

function readState(path: string): FakeState {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as FakeState
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return emptyState()
    throw new Error(`Cannot read the driver state from ${path}: ${(error as Error).message}`)
  }
}

function writeState(path: string, state: FakeState): void {
  writeFileSync(`${path}.tmp`, JSON.stringify(state))
  renameSync(`${path}.tmp`, path)
}
