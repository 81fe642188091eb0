// Buffers lines as UTF-8 bytes until they are written. Unlike strings, the bytes are not copied by the garbage collector.

/** The lines of one write. Exactly one of its functions must be called when the write has ended. */
export interface LineBatch {
  readonly chunks: readonly Uint8Array[]
  /** Drops the lines, because they are written. */
  release(): void
  /** Puts the lines back in front of the lines that were added since. */
  putBack(): void
}

export interface LineBuffer {
  /** The number of lines in the buffer. */
  readonly lineCount: number
  /** Adds a line with its newline, or returns false if it does not fit. A batch occupies the buffer until it is released. */
  add(line: string): boolean
  takeBatch(): LineBatch
}

interface Chunk {
  readonly bytes: Buffer
  usedBytes: number
  lineCount: number
}

const CHUNK_BYTES = 128 * 1024
/** UTF-8 has at most this many bytes for each UTF-16 code unit. */
const BYTES_PER_CHARACTER_MAX = 3

export function createLineBuffer(bytesMax: number, chunkBytes = CHUNK_BYTES): LineBuffer {
  let chunks: Chunk[] = []
  let lastChunk: Chunk | undefined
  /** A chunk that can be reused, because its lines are written. */
  let spare: Chunk | undefined
  let bytes = 0
  let lineCount = 0

  function chunkFor(line: string): Chunk {
    if (lastChunk) {
      const freeBytes = lastChunk.bytes.length - lastChunk.usedBytes
      if (line.length * BYTES_PER_CHARACTER_MAX <= freeBytes || Buffer.byteLength(line) <= freeBytes) return lastChunk
    }
    const isShort = line.length * BYTES_PER_CHARACTER_MAX <= chunkBytes
    const chunk =
      isShort && spare ? spare : newChunk(isShort ? chunkBytes : Math.max(chunkBytes, Buffer.byteLength(line)))
    if (chunk === spare) spare = undefined
    chunks.push(chunk)
    lastChunk = chunk
    return chunk
  }

  return {
    get lineCount() {
      return lineCount
    },

    add(line) {
      const bytesBound = bytes + line.length * BYTES_PER_CHARACTER_MAX
      if (bytesBound > bytesMax && bytes + Buffer.byteLength(line) > bytesMax) return false
      const chunk = chunkFor(line)
      const byteCount = chunk.bytes.write(line, chunk.usedBytes)
      chunk.usedBytes += byteCount
      chunk.lineCount++
      bytes += byteCount
      lineCount++
      return true
    },

    takeBatch() {
      const batchChunks = chunks
      chunks = []
      lastChunk = undefined
      return {
        chunks: batchChunks.map((chunk) => chunk.bytes.subarray(0, chunk.usedBytes)),
        release() {
          for (const chunk of batchChunks) {
            bytes -= chunk.usedBytes
            lineCount -= chunk.lineCount
          }
          const reusableChunk = batchChunks.find((chunk) => chunk.bytes.length === chunkBytes)
          if (reusableChunk) spare = { bytes: reusableChunk.bytes, usedBytes: 0, lineCount: 0 }
        },
        putBack() {
          chunks = [...batchChunks, ...chunks]
          lastChunk = chunks.at(-1)
        },
      }
    },
  }
}

const newChunk = (size: number): Chunk => ({ bytes: Buffer.allocUnsafeSlow(size), usedBytes: 0, lineCount: 0 })
