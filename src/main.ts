// Entry point of the program: sets up the memory, the exit report and the stop signal, and runs the command line with the system
// clock and real randomness.
import { systemClock, systemRandom } from './base/clock.ts'
import { releaseFilePages } from './base/heap/file-pages.ts'
import { limitHeapGrowth } from './base/heap/growth.ts'
import { collectGarbageWhenIdle } from './base/heap/idle-collection.ts'
import { keepAliveUntil } from './base/keep-alive.ts'
import { runCommandLine } from './cli/run.ts'
import { reportExit } from './runtime/exit-report.ts'
import { createStopSignal } from './runtime/stop-signal.ts'

/** Upper limit for a command to stop after a signal. Commands have their own, shorter limits. */
const STOP_MS_MAX = 30_000
/** Time after the end of the command for open handles, such as a hanging child process, to close. */
const LINGER_MS_MAX = 2_000

limitHeapGrowth()
const clock = systemClock()
collectGarbageWhenIdle({ clock })
releaseFilePages({ clock })
const exitReport = reportExit()
const { signal } = createStopSignal((name) => exitReport.setReason(`${name} was received a second time`))
function exitUnstopped(): void {
  exitReport.setReason(`the command did not stop within ${STOP_MS_MAX / 1_000} s`)
  process.exit(1)
}
signal.addEventListener('abort', () => setTimeout(exitUnstopped, STOP_MS_MAX).unref())
process.stdout.on('error', () => {}) // a closed pipe, as after `| head`, must not end the process

const command = runCommandLine(process.argv, {
  clock,
  random: systemRandom(),
  signal,
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
  columns: Number(process.env.COLUMNS) || process.stdout.columns,
})
void keepAliveUntil(command).then((exitCode) => {
  process.exitCode = exitCode
  exitReport.finish()
  setTimeout(() => process.exit(), LINGER_MS_MAX).unref()
})
