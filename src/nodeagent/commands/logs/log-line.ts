// The format of container logs, which is that of the Container Runtime Interface: each line has the time at which the agent read
// it, the stream, and a tag. The tag is F for a line that ended with a newline and P for a part of a longer one.
//   2026-01-05T09:30:00.125000000Z stdout F hello
import { Buffer } from 'node:buffer'

export type OutputStream = 'stdout' | 'stderr'

/** A longer line is split into parts. */
export const LOG_LINE_BYTES_MAX = 16 * 1024
const NEWLINE = 0x0a
const SPACE = 0x20

export interface LineSplitter {
  /** Returns the log lines that the chunk completes. */
  add(chunk: Uint8Array, nowMs: number): Buffer
  /** Returns the remaining bytes, which have no newline, as a part. */
  end(nowMs: number): Buffer
}

/** Splits the output of one stream into log lines. Buffers at most LOG_LINE_BYTES_MAX bytes of an unfinished line. */
export function createLineSplitter(stream: OutputStream): LineSplitter {
  let rest = Buffer.alloc(0)
  return {
    add(chunk, nowMs) {
      const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
      const pieces: Buffer[] = []
      const [full, part] = (['F', 'P'] as const).map((tag) => linePrefix(nowMs, stream, tag)) as [Buffer, Buffer]
      let start = 0
      while (start < bytes.length) {
        const newline = bytes.indexOf(NEWLINE, start)
        const end = newline < 0 ? bytes.length : newline
        if (end - start > LOG_LINE_BYTES_MAX) {
          pieces.push(part, bytes.subarray(start, start + LOG_LINE_BYTES_MAX), LINE_END)
          start += LOG_LINE_BYTES_MAX
          continue
        }
        if (newline < 0) break
        pieces.push(full, bytes.subarray(start, newline + 1))
        start = newline + 1
      }
      rest = Buffer.from(bytes.subarray(start))
      return Buffer.concat(pieces)
    },
    end(nowMs) {
      if (rest.length === 0) return rest
      const line = Buffer.concat([linePrefix(nowMs, stream, 'P'), rest, LINE_END])
      rest = Buffer.alloc(0)
      return line
    },
  }
}

const LINE_END = Buffer.from('\n')

const linePrefix = (nowMs: number, stream: OutputStream, tag: 'F' | 'P'): Buffer =>
  Buffer.from(`${new Date(nowMs).toISOString().slice(0, -1)}000000Z ${stream} ${tag} `)

export interface LogLine {
  /** As in the file. */
  readonly time: string
  readonly stream: OutputStream
  readonly isPart: boolean
  /** Without the newline. */
  readonly content: Buffer
}

/** Parses a line without its newline. Returns undefined for a damaged one, e.g. after a crash of the machine. */
export function parseLogLine(line: Buffer): LogLine | undefined {
  const timeEnd = line.indexOf(SPACE)
  const streamEnd = line.indexOf(SPACE, timeEnd + 1)
  const tagEnd = line.indexOf(SPACE, streamEnd + 1)
  if (timeEnd < 0 || streamEnd < 0 || tagEnd < 0) return undefined
  const stream = line.toString('latin1', timeEnd + 1, streamEnd)
  const tag = line.toString('latin1', streamEnd + 1, tagEnd)
  if ((stream !== 'stdout' && stream !== 'stderr') || (tag !== 'F' && tag !== 'P')) return undefined
  const time = line.toString('latin1', 0, timeEnd)
  return { time, stream, isPart: tag === 'P', content: line.subarray(tagEnd + 1) }
}
