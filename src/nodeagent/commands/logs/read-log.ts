// Reads the log of one container run as `kubectl logs` requests it: the last lines, lines since a time, with or without
// timestamps, and following new lines. Reads in chunks as fast as the client receives them, across rotated files.
import { type FileHandle, open } from 'node:fs/promises'
import { errorCode } from '../../../base/disk-error.ts'
import { parseLogLine } from './log-line.ts'
import { listLogFiles } from './log-writer.ts'

export interface LogOptions {
  readonly tailLines?: number
  readonly sinceMs?: number
  /** Truncates the output to this number of bytes, even inside a line. */
  readonly limitBytes?: number
  readonly timestamps?: boolean
}

export interface FollowedLog {
  /** Whether the log is complete. */
  isComplete(): boolean
  /** Resolves when the log grows or ends. */
  changed(signal: AbortSignal): Promise<void>
}

const CHUNK_BYTES = 64 * 1024
const NEWLINE = 0x0a

/** Returns the requested part of the log. With `followed`, continues until that log is complete. */
export async function* readLog(
  path: string,
  options: LogOptions,
  { followed, signal }: { readonly followed?: FollowedLog; readonly signal: AbortSignal },
): AsyncGenerator<Buffer> {
  const format = createFormat(options)
  for await (const chunk of readFiles(path, options, followed, signal)) {
    const output = format.add(chunk)
    if (output.length > 0) yield output
    if (format.isFull()) return
  }
}

/** Returns the raw content of the files from the start of the requested lines. */
async function* readFiles(
  path: string,
  { tailLines }: LogOptions,
  followed: FollowedLog | undefined,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let { file, offset } = await openStart(path, tailLines)
  try {
    for (;;) {
      signal.throwIfAborted()
      const isComplete = followed?.isComplete() ?? true // before the read, so that no addition is missed
      const change = isComplete ? undefined : followed?.changed(signal)
      change?.catch(() => {}) // awaited below
      if (file) {
        const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
        const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, offset)
        if (bytesRead > 0) {
          offset += bytesRead
          yield buffer.subarray(0, bytesRead)
          continue
        }
      }
      const nextFile = await openNext(path, file)
      if (nextFile) {
        await file?.close()
        file = nextFile
        offset = 0
        continue
      }
      if (isComplete) return
      await change
    }
  } finally {
    await file?.close()
  }
}

/**
 * Returns the file after this one, or undefined if this is the newest. A file that has been deleted is followed by the oldest.
 */
async function openNext(path: string, file: FileHandle | undefined): Promise<FileHandle | undefined> {
  const current = file && (await file.stat())
  let next: FileHandle | undefined
  for (const candidatePath of (await listLogFiles(path)).reverse()) {
    const candidate = await openIfPresent(candidatePath)
    if (!candidate) continue
    if (current && (await candidate.stat()).ino === current.ino) {
      await candidate.close()
      return next
    }
    await next?.close()
    next = candidate
  }
  return next
}

async function openIfPresent(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

interface LogStart {
  /** Undefined if there is no log yet. */
  readonly file: FileHandle | undefined
  readonly offset: number
}

/** Opens the file in which the last lines start, or the oldest file without `tailLines`. */
async function openStart(path: string, tailLines: number | undefined): Promise<LogStart> {
  const paths = await listLogFiles(path)
  if (tailLines === undefined)
    return { file: paths[0] === undefined ? undefined : await openIfPresent(paths[0]), offset: 0 }
  let start: LogStart = { file: undefined, offset: 0 }
  let missingLines = tailLines
  for (const candidatePath of paths.reverse()) {
    const file = await openIfPresent(candidatePath)
    if (!file) continue
    const { offset, found } = await findTail(file, missingLines)
    await start.file?.close()
    start = { file, offset }
    missingLines -= found
    if (missingLines <= 0) break
  }
  return start
}

/** Searches backwards for the start of the last lines of a file. */
async function findTail(file: FileHandle, lines: number): Promise<{ offset: number; found: number }> {
  const { size } = await file.stat()
  if (lines === 0 || size === 0) return { offset: size, found: 0 }
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  let found = 0
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES)
    const { bytesRead } = await file.read(buffer, 0, end - start, start)
    for (let index = bytesRead - 1; index >= 0; index--) {
      if (buffer[index] !== NEWLINE || start + index === size - 1) continue // the last newline ends the last line
      found++
      if (found === lines) return { offset: start + index + 1, found }
    }
    end = start
  }
  return { offset: 0, found: found + 1 }
}

/** Converts raw content to the output of `kubectl logs`. */
function createFormat({ sinceMs, limitBytes = Number.POSITIVE_INFINITY, timestamps = false }: LogOptions) {
  let rest: Buffer = Buffer.alloc(0)
  let remainingBytes = limitBytes
  let isInsideLine = false
  return {
    isFull: () => remainingBytes <= 0,
    add(chunk: Buffer): Buffer {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const pieces: Buffer[] = []
      let start = 0
      for (;;) {
        const newline = bytes.indexOf(NEWLINE, start)
        if (newline < 0) break
        const line = parseLogLine(bytes.subarray(start, newline))
        if (line && (sinceMs === undefined || Date.parse(line.time) >= sinceMs)) {
          if (timestamps && !isInsideLine) pieces.push(Buffer.from(`${line.time} `))
          pieces.push(line.isPart ? line.content : bytes.subarray(newline - line.content.length, newline + 1))
          isInsideLine = line.isPart
        }
        start = newline + 1
      }
      rest = Buffer.from(bytes.subarray(start))
      const output = Buffer.concat(pieces)
      const limited = output.length > remainingBytes ? output.subarray(0, remainingBytes) : output
      remainingBytes -= limited.length
      return limited
    },
  }
}
