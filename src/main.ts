// The program: real clock, real randomness, the signals that stop it, and the command line.
import { systemClock, systemRandom } from './base/clock.ts'
import { runCommandLine } from './cli/run.ts'
import { createStopSignal } from './runtime/stop-signal.ts'

/** Commands bound their own stop; this is the last resort if one of them does not. */
const STOP_MS_MAX = 30_000
/** After the command has returned, handles that still keep the process alive (such as a hanging child) get this long. */
const LINGER_MS_MAX = 2_000

const { signal } = createStopSignal()
signal.addEventListener('abort', () => setTimeout(() => process.exit(1), STOP_MS_MAX).unref())
process.stdout.on('error', () => {}) // a closed pipe, as after `| head`, must not end the process

process.exitCode = await runCommandLine(process.argv, {
  clock: systemClock(),
  random: systemRandom(),
  signal,
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
})
setTimeout(() => process.exit(), LINGER_MS_MAX).unref()
