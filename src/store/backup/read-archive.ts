// Reads a backup archive as a sequence of frames, and verifies the checksum of each frame and of the whole.
import { createHash, type Hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { CHECKSUM_BYTES, decodeFrame, FRAME_HEADER_BYTES, type Frame, MAGIC, PAYLOAD_BYTES_MAX } from './archive.ts'

export interface ArchiveSource {
  /** The name of the archive in errors. */
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Thrown if an archive is damaged, incomplete, of an unknown version or not in sequence, or if a file is not an archive. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/**
 * Yields the frames, each after its checksum is verified. Throws an ArchiveError if the version is unknown, a frame is damaged, or the
 * end is missing or wrong.
 */
export async function* readArchive({ name, chunks }: ArchiveSource): AsyncGenerator<Frame> {
  const reader = new ByteReader(chunks)
  checkMagic(name, await reader.read(MAGIC.length))
  let entries = 0
  for (;;) {
    const start = reader.position
    const sha256 = reader.digest()
    const frame = await readFrame(reader).catch((error: Error) => {
      throw new ArchiveError(`${name} is damaged at byte ${start}: ${error.message}. Use another copy of it.`)
    })
    if (frame.type === 'entries') entries += frame.entries.length
    if (frame.type === 'end' && (frame.end.sha256 !== sha256 || frame.end.entries !== entries)) {
      throw new ArchiveError(`${name} is damaged: its checksum differs. Use another copy of it.`)
    }
    if (frame.type === 'end' && (await reader.read(1)).length > 0) {
      throw new ArchiveError(`${name} is damaged: data follows its end. Use another copy of it.`)
    }
    yield frame
    if (frame.type === 'end') return
  }
}

/** Returns whether the file is a backup archive of any version. */
export async function isArchiveFile(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0)
    return MAGIC_OF_ANY_VERSION.test(buffer.toString('latin1', 0, bytesRead))
  } finally {
    await file.close()
  }
}

const MAGIC_OF_ANY_VERSION = /^stowage-backup (\d+)\n/

function checkMagic(name: string, bytes: Buffer): void {
  if (bytes.equals(MAGIC)) return
  const [, version] = MAGIC_OF_ANY_VERSION.exec(bytes.toString('latin1')) ?? []
  throw new ArchiveError(
    version
      ? `${name} is a backup archive of version ${version}; this version of Stowage reads version 1.`
      : `${name} is not a backup archive of Stowage.`,
  )
}

async function readFrame(reader: ByteReader): Promise<Frame> {
  const header = await reader.read(FRAME_HEADER_BYTES)
  if (header.length < FRAME_HEADER_BYTES) throw new Error('it ends before it is complete')
  const payloadBytes = header.readUInt32BE(1)
  if (payloadBytes > PAYLOAD_BYTES_MAX) throw new Error('a frame is too long')
  const payloadAndChecksum = await reader.read(payloadBytes + CHECKSUM_BYTES)
  if (payloadAndChecksum.length < payloadBytes + CHECKSUM_BYTES) throw new Error('it ends before it is complete')
  const payload = payloadAndChecksum.subarray(0, payloadBytes)
  if (crc32(payload, crc32(header)) !== payloadAndChecksum.readUInt32BE(payloadBytes))
    throw new Error('a checksum differs')
  return decodeFrame(header.readUInt8(0), payload)
}

/** Reads exact numbers of bytes from chunks of any size, and hashes them. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #hash: Hash = createHash('sha256')
  #bufferedChunks: Buffer[] = []
  #bufferedBytes = 0
  position = 0

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Returns the next `size` bytes, or fewer at the end. */
  async read(size: number): Promise<Buffer> {
    while (this.#bufferedBytes < size) {
      const { value, done } = await this.#chunks.next()
      if (done) break
      this.#bufferedChunks.push(Buffer.from(value.buffer, value.byteOffset, value.length))
      this.#bufferedBytes += value.length
    }
    const buffer = this.#bufferedChunks.length === 1 ? this.#bufferedChunks[0]! : Buffer.concat(this.#bufferedChunks)
    const bytes = buffer.subarray(0, size)
    this.#bufferedChunks = [buffer.subarray(bytes.length)]
    this.#bufferedBytes = buffer.length - bytes.length
    this.#hash.update(bytes)
    this.position += bytes.length
    return bytes
  }

  /** Returns the SHA-256 of the bytes read so far. */
  digest(): string {
    return this.#hash.copy().digest('hex')
  }
}
