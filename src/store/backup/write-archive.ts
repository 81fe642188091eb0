// ArchiveWriter: writes the frames of a backup archive to a sink, and ends it with its checksum.
import { createHash } from 'node:crypto'
import { encodeFrame, type Frame, MAGIC } from './archive.ts'

/** Receives the bytes of an archive in order. Resolves when it accepts more. */
export type ArchiveSink = (bytes: Uint8Array) => Promise<void>

export class ArchiveWriter {
  readonly #sink: ArchiveSink
  readonly #hash = createHash('sha256')
  #bytes = 0
  #entries = 0

  constructor(sink: ArchiveSink) {
    this.#sink = sink
  }

  /** The number of bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  async write(frame: Exclude<Frame, { type: 'end' }>): Promise<void> {
    if (this.#bytes === 0) await this.#write(MAGIC)
    if (frame.type === 'entries') this.#entries += frame.entries.length
    await this.#write(encodeFrame(frame))
  }

  async end(storeEntries: number): Promise<void> {
    const sha256 = this.#hash.copy().digest('hex')
    await this.#write(encodeFrame({ type: 'end', end: { entries: this.#entries, storeEntries, sha256 } }))
  }

  async #write(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes)
    this.#bytes += bytes.length
    await this.#sink(bytes)
  }
}
