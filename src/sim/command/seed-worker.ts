// Implements both sides of a worker process that runs one seed after another: the parent and the worker. A seed that exhausts
// memory or never ends affects its worker only.
import { type ChildProcess, fork } from 'node:child_process'
import process from 'node:process'
import type { Clock } from '../../base/clock.ts'
import type { SeedResult } from './report.ts'
import type { SeedWorker } from './seed-pool.ts'

/** How long a seed may run, in real time. */
export const SEED_MS_MAX = 300_000

/** A large young generation, because most objects of a run are short-lived, and no stack traces. */
const FAST_RUN_FLAGS = ['--max-semi-space-size=64', '--stack-trace-limit=0']

/** `script` must call serveSeeds when started with `args`. */
export function forkWorker(script: string, args: readonly string[], clock: Clock): SeedWorker {
  const execArgv = [...process.execArgv, ...FAST_RUN_FLAGS]
  const child = fork(script, [...args], { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  return { run: (seed) => requestSeed(child, seed, clock), stop: () => void child.kill('SIGKILL') }
}

function requestSeed(child: ChildProcess, seed: number, clock: Clock): Promise<SeedResult> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      cancel()
      child.off('message', onMessage).off('exit', onExit).off('error', onError)
      settle()
    }
    const fail = (reason: string) => end(() => reject(new Error(reason)))
    const onMessage = (result: unknown) => end(() => resolve(result as SeedResult))
    const onExit = (code: number | null, signal: string | null) =>
      fail(`the worker process ended with ${signal ?? code}`)
    const onError = (error: Error) => fail(error.message)
    const cancel = clock.after(SEED_MS_MAX, () => fail(`the run did not end within ${SEED_MS_MAX / 1000} real seconds`))
    child.on('message', onMessage).on('exit', onExit).on('error', onError)
    if (child.exitCode === null && child.signalCode === null) child.send({ seed })
    else onExit(child.exitCode, child.signalCode)
  })
}

/** The worker's side: runs until the parent disconnects. */
export function serveSeeds(runSeed: (seed: number) => Promise<SeedResult>): void {
  process.on('disconnect', () => process.exit())
  process.on('message', async (message: { readonly seed: number }) => {
    const result = await runSeed(message.seed)
    process.send?.(result)
  })
}
