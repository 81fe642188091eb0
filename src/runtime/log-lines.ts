// Writes log lines to a file descriptor without ever blocking the process, even on a full disk, a pipe without reader or a
// stopped terminal. Lines queue up to a bound; beyond it they are dropped and counted. A failed write is retried with the
// next line.
import { write, writeSync } from 'node:fs'

export interface LogLines {
  write(line: string): void
  /** Writes queued lines synchronously, once: for the exit of the process. */
  flush(): void
}

export const WAITING_MAX = 1024 ** 2 // characters

export function createLogLines(fd: number): LogLines {
  let waiting: string[] = []
  let waitingLength = 0
  let dropped = 0
  let begun: Buffer = Buffer.alloc(0) // taken from the queue and not completely written
  let isWriting = false

  function take(): void {
    if (begun.length > 0) return
    const note =
      dropped > 0 ? `${JSON.stringify({ level: 'warn', msg: `${dropped} lines of this log were dropped` })}\n` : ''
    begun = Buffer.from(waiting.join('') + note)
    waiting = []
    waitingLength = 0
    dropped = 0
  }

  function writeNext(): void {
    if (isWriting) return
    take()
    if (begun.length === 0) return
    isWriting = true
    write(fd, begun, (error, written) => {
      isWriting = false
      if (error) return
      begun = begun.subarray(written)
      writeNext()
    })
  }

  return {
    write(line) {
      if (waitingLength + line.length > WAITING_MAX) {
        dropped++
      } else {
        waiting.push(line)
        waitingLength += line.length
      }
      writeNext()
    },

    flush() {
      if (isWriting) begun = Buffer.alloc(0) // being written
      try {
        for (take(); begun.length > 0; take()) begun = begun.subarray(writeSync(fd, begun))
      } catch {
        // The process exits; there is nowhere to report this.
      }
    },
  }
}
