// The program: the real clock, the real dice, the signals that stop it, and the command line. Nothing else.
import { systemClock, systemRandom } from './base/clock.ts'
import { runCommandLine } from './cli/run.ts'

const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    if (stop.signal.aborted) process.exit(130) // asked twice: now
    stop.abort(new Error(`stopped by ${name}`))
  })
}

process.exitCode = await runCommandLine(process.argv, {
  clock: systemClock(),
  random: systemRandom(),
  signal: stop.signal,
  write: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
})
