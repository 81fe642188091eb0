// Where log lines go: a file descriptor that may be a file on a full disk, a pipe nobody reads, or a terminal that is
// held. None of them may stop the server: lines wait their turn up to a bound, beyond it they are dropped and counted,
// and what could not be written is tried again with the next line.
import { write, writeSync } from 'node:fs'

export interface LogLines {
  write(line: string): void
  /** What still waits, tried once and at the spot: for the end of the process. */
  flush(): void
}

export const WAITING_MAX = 1024 ** 2 // characters

export function createLogLines(fd: number): LogLines {
  let waiting: string[] = []
  let waitingLength = 0
  let dropped = 0
  let begun: Buffer = Buffer.alloc(0) // taken from those that wait, and not yet written to its end
  let isWriting = false

  function take(): void {
    if (begun.length > 0) return
    const told =
      dropped > 0 ? `${JSON.stringify({ level: 'warn', msg: `${dropped} lines of this log were dropped` })}\n` : ''
    begun = Buffer.from(waiting.join('') + told)
    waiting = []
    waitingLength = 0
    dropped = 0
  }

  function goOn(): void {
    if (isWriting) return
    take()
    if (begun.length === 0) return
    isWriting = true
    write(fd, begun, (error, written) => {
      isWriting = false
      if (error) return
      begun = begun.subarray(written)
      goOn()
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
      goOn()
    },

    flush() {
      if (isWriting) begun = Buffer.alloc(0) // on its way already
      try {
        for (take(); begun.length > 0; take()) begun = begun.subarray(writeSync(fd, begun))
      } catch {
        // Nobody is left to tell.
      }
    },
  }
}
