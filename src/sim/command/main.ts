// The entry point of `npm run sim`: provides the real clock, worker processes and the terminal to command.ts. Started with
// the argument WORKER, the program is such a worker.
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../base/clock.ts'
import { runPlan } from '../engine/run-plan.ts'
import { generatePlan } from '../workload/generate-plan.ts'
import { runSeed, type SimProgram, simulate } from './command.ts'
import { readFlags } from './flags.ts'
import { forkWorker, serveSeeds } from './seed-worker.ts'

const WORKER = 'worker'
const script = fileURLToPath(import.meta.url)

function createProgram(): SimProgram {
  const clock = systemClock()
  return {
    generatePlan,
    run: runPlan,
    clock,
    cores: availableParallelism(),
    regressionsDir: fileURLToPath(new URL('../src/sim/regressions', import.meta.url)), // from dist/
    startWorker: (flags) => forkWorker(script, [WORKER, ...flags], clock),
    print: (text) => void process.stdout.write(text),
    progress: (text) => void process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`),
  }
}

// A reader such as `head` closes the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

const args = process.argv.slice(2)
if (args[0] === WORKER) {
  const command = readFlags(args.slice(1), { cores: 1 })
  if (command.do !== 'many') throw new Error(`A worker takes no flags of a single run, but got: ${args.join(' ')}`)
  serveSeeds((seed) => runSeed(seed, command, { generatePlan, run: runPlan }))
} else {
  process.exitCode = await simulate(args, createProgram())
}
