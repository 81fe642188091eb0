// Writes log lines to a file descriptor asynchronously. The queue of lines is bounded; further lines are dropped and counted. A
// failed write is retried with the next line.
import { write, writeSync } from 'node:fs'

export interface LogLines {
  write(line: string): void
  /** Writes the queued lines synchronously, when the process exits. */
  flush(): void
}

export const QUEUED_CHARACTERS_MAX = 1024 ** 2 // further lines are dropped

/** `format` converts each line, which is a JSON object. */
export function createLogLines(fd: number, format: (line: string) => string = (line) => line): LogLines {
  let queuedLines: string[] = []
  let queuedLength = 0
  let droppedCount = 0
  let unwrittenBytes: Buffer = Buffer.alloc(0) // removed from the queue, but not completely written
  let isWriting = false

  function fillBuffer(): void {
    if (unwrittenBytes.length > 0) return
    const note = { level: 'warn', msg: `dropped log lines: ${droppedCount}` }
    unwrittenBytes = Buffer.from(queuedLines.join('') + (droppedCount > 0 ? format(`${JSON.stringify(note)}\n`) : ''))
    queuedLines = []
    queuedLength = 0
    droppedCount = 0
  }

  function writeNext(): void {
    if (isWriting) return
    fillBuffer()
    if (unwrittenBytes.length === 0) return
    isWriting = true
    write(fd, unwrittenBytes, (error, byteCount) => {
      isWriting = false
      if (error) return
      unwrittenBytes = unwrittenBytes.subarray(byteCount)
      writeNext()
    })
  }

  return {
    write(jsonLine) {
      const line = format(jsonLine)
      if (queuedLength + line.length > QUEUED_CHARACTERS_MAX) {
        droppedCount++
      } else {
        queuedLines.push(line)
        queuedLength += line.length
      }
      writeNext()
    },

    flush() {
      if (isWriting) unwrittenBytes = Buffer.alloc(0) // the asynchronous write completes it
      try {
        for (fillBuffer(); unwrittenBytes.length > 0; fillBuffer())
          unwrittenBytes = unwrittenBytes.subarray(writeSync(fd, unwrittenBytes))
      } catch {
        // The process exits, so the error cannot be reported.
      }
    },
  }
}
