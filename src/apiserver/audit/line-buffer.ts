// Holds lines as UTF-8 until they are written. A string that waits would be copied by the garbage collector; its bytes are not.

/** The lines that a write takes out of the buffer. Exactly one of its functions is called when the write has ended. */
export interface LineBatch {
  readonly chunks: readonly Uint8Array[]
  /** Drops the lines, because they are written. */
  release(): void
  /** Puts the lines back before those added since. */
  putBack(): void
}

export interface LineBuffer {
  /** The number of lines in the buffer. */
  readonly lines: number
  /** Adds a line with its newline, or returns false if it does not fit. Lines of a batch occupy the buffer until its end. */
  add(line: string): boolean
  takeBatch(): LineBatch
}

interface Chunk {
  readonly bytes: Buffer
  used: number
  lines: number
}

const CHUNK_BYTES = 128 * 1024
/** UTF-8 has at most this many bytes for each UTF-16 code unit. */
const BYTES_PER_CHARACTER_MAX = 3

export function createLineBuffer(bytesMax: number, chunkBytes = CHUNK_BYTES): LineBuffer {
  let chunks: Chunk[] = []
  let last: Chunk | undefined
  /** A chunk that is written, to be used again. */
  let spare: Chunk | undefined
  let bytes = 0
  let lines = 0

  function chunkFor(line: string): Chunk {
    if (last) {
      const free = last.bytes.length - last.used
      if (line.length * BYTES_PER_CHARACTER_MAX <= free || Buffer.byteLength(line) <= free) return last
    }
    const isShort = line.length * BYTES_PER_CHARACTER_MAX <= chunkBytes
    const chunk =
      isShort && spare ? spare : newChunk(isShort ? chunkBytes : Math.max(chunkBytes, Buffer.byteLength(line)))
    if (chunk === spare) spare = undefined
    chunks.push(chunk)
    last = chunk
    return chunk
  }

  return {
    get lines() {
      return lines
    },

    add(line) {
      if (bytes + line.length > bytesMax) return false
      const chunk = chunkFor(line)
      const written = chunk.bytes.write(line, chunk.used)
      chunk.used += written
      chunk.lines++
      bytes += written
      lines++
      return true
    },

    takeBatch() {
      const batchChunks = chunks
      chunks = []
      last = undefined
      return {
        chunks: batchChunks.map((chunk) => chunk.bytes.subarray(0, chunk.used)),
        release() {
          for (const chunk of batchChunks) {
            bytes -= chunk.used
            lines -= chunk.lines
          }
          const reused = batchChunks.find((chunk) => chunk.bytes.length === chunkBytes)
          if (reused) spare = { bytes: reused.bytes, used: 0, lines: 0 }
        },
        putBack() {
          chunks = [...batchChunks, ...chunks]
          last = chunks.at(-1)
        },
      }
    },
  }
}

const newChunk = (size: number): Chunk => ({ bytes: Buffer.allocUnsafeSlow(size), used: 0, lines: 0 })
