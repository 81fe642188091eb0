// Writes log lines to a file descriptor without blocking the process, even with a full disk, a pipe without reader or a
// stopped terminal. The queue of lines is bounded; further lines are dropped and counted. A failed write is retried with
// the next line.
import { write, writeSync } from 'node:fs'

export interface LogLines {
  write(line: string): void
  /** Writes the queued lines synchronously, when the process exits. */
  flush(): void
}

export const QUEUED_CHARACTERS_MAX = 1024 ** 2 // further lines are dropped

/** `format` converts each line, which is a JSON object. */
export function createLogLines(fd: number, format: (line: string) => string = (line) => line): LogLines {
  let queued: string[] = []
  let queuedLength = 0
  let dropped = 0
  let unwritten: Buffer = Buffer.alloc(0) // removed from the queue, but not completely written
  let isWriting = false

  function fillBuffer(): void {
    if (unwritten.length > 0) return
    const note = { level: 'warn', msg: `${dropped} log lines were dropped` }
    unwritten = Buffer.from(queued.join('') + (dropped > 0 ? format(`${JSON.stringify(note)}\n`) : ''))
    queued = []
    queuedLength = 0
    dropped = 0
  }

  function writeNext(): void {
    if (isWriting) return
    fillBuffer()
    if (unwritten.length === 0) return
    isWriting = true
    write(fd, unwritten, (error, byteCount) => {
      isWriting = false
      if (error) return
      unwritten = unwritten.subarray(byteCount)
      writeNext()
    })
  }

  return {
    write(jsonLine) {
      const line = format(jsonLine)
      if (queuedLength + line.length > QUEUED_CHARACTERS_MAX) {
        dropped++
      } else {
        queued.push(line)
        queuedLength += line.length
      }
      writeNext()
    },

    flush() {
      if (isWriting) unwritten = Buffer.alloc(0) // the asynchronous write completes it
      try {
        for (fillBuffer(); unwritten.length > 0; fillBuffer()) unwritten = unwritten.subarray(writeSync(fd, unwritten))
      } catch {
        // The process exits, so the error cannot be reported.
      }
    },
  }
}
