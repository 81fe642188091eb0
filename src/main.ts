// The program: the real clock, the real dice, the signals that stop it, and the command line. Nothing else.
import { setMaxListeners } from 'node:events'
import { systemClock, systemRandom } from './base/clock.ts'
import { runCommandLine } from './cli/run.ts'

const stop = new AbortController()
setMaxListeners(0, stop.signal) // every watch of every controller listens to it
// Whoever read our output may be gone; that is no reason to die.
process.stdout.on('error', () => {})
const SAME_WISH_MS = 1_000
/** Commands bound their own end; whoever still does not has lost a promise, and its user has waited long enough. */
const STOP_MS_MAX = 30_000
/** When a command is over, what still holds the process (a program that hangs, say) is not waited for. */
const LINGER_MS_MAX = 2_000
let askedMs = 0
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // Asked again after a while: now. At once it is the same wish, told by both a terminal and its npm.
    if (stop.signal.aborted && performance.now() - askedMs > SAME_WISH_MS) process.exit(130)
    if (stop.signal.aborted) return
    askedMs = performance.now()
    setTimeout(() => process.exit(1), STOP_MS_MAX).unref()
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
setTimeout(() => process.exit(), LINGER_MS_MAX).unref()
