// Writes a driver's output to a file of bounded size, and returns its first and last lines for messages.
//   log      current output
//   log.1    earlier output
import { type FileHandle, open, rename } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { errorCode } from '../../../base/disk-error.ts'

/** A file that would exceed this size becomes `log.1`, and the earlier `log.1` is deleted. */
const LOG_BYTES_MAX = 8 * 1024 ** 2
/** How much output is quoted. Both ends, because usage texts and stack traces have the error at their beginning. */
const QUOTED_CHARACTERS_MAX = 4_096
const FIRST_LINES_MAX = 3
const LAST_LINES_MAX = 5
const LINE_LENGTH_MAX = 300 // longer lines are truncated in messages

/** Colors and other control characters, which must not reach the user's terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

export interface DriverLog {
  readonly path: string
  /** Copies a stream to the file until the stream ends. Output that cannot be written is dropped. */
  follow(output: Readable): Promise<void>
  /** Returns the first and last lines since `startRun` was called. */
  quoteLines(): string[]
  /** Discards the lines of the previous process. */
  startRun(): void
  close(): Promise<void>
}

export async function openDriverLog(path: string, { bytesMax = LOG_BYTES_MAX } = {}): Promise<DriverLog> {
  let file: FileHandle = await open(path, 'a', 0o640)
  let { size } = await file.stat()
  let [beginning, end, length] = ['', '', 0]
  let lastWrite = Promise.resolve()

  async function write(chunk: Buffer): Promise<void> {
    try {
      if (size > 0 && size + chunk.length > bytesMax) {
        await file.close()
        await rename(path, `${path}.1`)
        file = await open(path, 'a', 0o640)
        size = 0
      }
      await file.write(chunk)
      size += chunk.length
    } catch (error) {
      if (errorCode(error) === '') throw error
    }
  }

  return {
    path,
    async follow(output) {
      // Waiting for each write slows down a driver that writes faster than the disk.
      for await (const chunk of output as AsyncIterable<Buffer>) {
        const text = chunk.toString('utf8')
        beginning = (beginning + text).slice(0, QUOTED_CHARACTERS_MAX)
        end = (end + text).slice(-QUOTED_CHARACTERS_MAX)
        length += text.length
        lastWrite = lastWrite.then(() => write(chunk))
        await lastWrite
      }
    },
    quoteLines() {
      const lines = splitLines(end)
      if (length <= QUOTED_CHARACTERS_MAX && lines.length <= FIRST_LINES_MAX + LAST_LINES_MAX) return lines
      return [...splitLines(beginning).slice(0, FIRST_LINES_MAX), '…', ...lines.slice(-LAST_LINES_MAX)]
    },
    startRun() {
      ;[beginning, end, length] = ['', '', 0]
    },
    async close() {
      await lastWrite.catch(() => {})
      await file.close()
    },
  }
}

const splitLines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replaceAll(ESCAPES, '').trim().slice(0, LINE_LENGTH_MAX))
    .filter((line) => line !== '')
