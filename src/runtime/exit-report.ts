// Writes a line with the reason to standard error if a process exits before its command has ended.
import { writeSync } from 'node:fs'

export interface ExitReport {
  /** Sets the reason for an exit that follows. */
  setReason(reason: string): void
  /** Called when the command has ended. Later exits are not reported. */
  finish(): void
}

interface ExitingProcess {
  on(event: 'exit', listener: (code: number) => void): unknown
}

const STANDARD_ERROR = 2

export function reportExit(
  exitingProcess: ExitingProcess = process,
  write: (text: string) => void = (text) => void writeSync(STANDARD_ERROR, text),
): ExitReport {
  let reason = 'the event loop is empty, but the command has not ended; please report this as a bug'
  let isFinished = false
  exitingProcess.on('exit', (code) => {
    if (isFinished) return
    try {
      write(`stowage exits with code ${code}: ${reason}\n`)
    } catch {
      // Standard error is closed.
    }
  })
  return {
    setReason(nextReason) {
      reason = nextReason
    },
    finish() {
      isFinished = true
    },
  }
}
