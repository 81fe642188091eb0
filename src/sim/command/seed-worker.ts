// A process of its own that runs seeds one after the other: both ends of it. A seed that takes all memory or never
// ends takes only this process with it.
import { type ChildProcess, fork } from 'node:child_process'
import process from 'node:process'
import type { Clock } from '../../base/clock.ts'
import type { SeedResult } from './report.ts'
import type { SeedWorker } from './seed-pool.ts'

/** Of real time; a seed takes about a second. Whatever takes longer goes in circles, or has no processor to run on. */
export const SEED_MS_MAX = 300_000

/**
 * Most of what a run makes is soon done with: the longer it may lie, the less of it is copied. Where an error was made is
 * not asked here: a seed that fails is run again, by itself, to be read.
 */
const IN_HASTE = ['--max-semi-space-size=64', '--stack-trace-limit=0']

/** `script` is a program that calls serveSeeds when it is given `args`. */
export function forkWorker(script: string, args: readonly string[], clock: Clock): SeedWorker {
  const execArgv = [...process.execArgv, ...IN_HASTE]
  const child = fork(script, [...args], { execArgv, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  return { run: (seed) => ask(child, seed, clock), stop: () => void child.kill('SIGKILL') }
}

function ask(child: ChildProcess, seed: number, clock: Clock): Promise<SeedResult> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      cancel()
      child.off('message', onMessage).off('exit', onExit).off('error', onError)
      settle()
    }
    const fail = (because: string) => end(() => reject(new Error(because)))
    const onMessage = (result: unknown) => end(() => resolve(result as SeedResult))
    const onExit = (code: number | null, signal: string | null) => fail(`its process ended with ${signal ?? code}`)
    const onError = (error: Error) => fail(error.message)
    const cancel = clock.after(SEED_MS_MAX, () => fail(`it did not end within ${SEED_MS_MAX / 1000} real seconds`))
    child.on('message', onMessage).on('exit', onExit).on('error', onError)
    if (child.exitCode === null && child.signalCode === null) child.send({ seed })
    else onExit(child.exitCode, child.signalCode)
  })
}

/** The child's side: lives until its parent is gone. */
export function serveSeeds(runSeed: (seed: number) => Promise<SeedResult>): void {
  process.on('disconnect', () => process.exit())
  process.on('message', async (message: { readonly seed: number }) => {
    const result = await runSeed(message.seed)
    process.send?.(result)
  })
}
