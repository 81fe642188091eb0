// Holds the chunks that this server has committed but not merged yet, with their encoded records. A merge of these chunks neither
// reads nor decodes them. Chunks of earlier starts and of other servers are not included.

export interface UnmergedChunk {
  readonly key: string
  readonly value: Uint8Array
}

/** Beyond this size all chunks are dropped from memory, and a merge reads them from the store. */
const BYTES_MAX = 8 * 1024 * 1024

/** The length of #recordCounts: a power of 2, because hashOf masks the hash with it. Small, so that it stays in the processor's cache. */
const COUNTS = 4_096

/** The largest number that #recordCounts can hold. */
const COUNT_MAX = 255

export class UnmergedChunks {
  readonly #values = new Map<string, Uint8Array>()
  /**
   * The number of records by a hash of their owner, since the last call of takeRecordsMax. Owners with the same hash are counted
   * together, and so are records that were not committed, so that a count can be too large.
   */
  readonly #recordCounts = new Uint8Array(COUNTS)
  #recordsMax = 0
  #previousRecordsMax = 0
  #bytes = 0
  #hasDropped = false

  get size(): number {
    return this.#values.size
  }

  /** Counts a record. Must be called for each record of a chunk before the chunk is added. */
  countRecord(owner: string): void {
    const index = hashOf(owner)
    const count = this.#recordCounts[index]! + 1
    if (count > COUNT_MAX) {
      this.#recordsMax = Number.POSITIVE_INFINITY
      return
    }
    this.#recordCounts[index] = count
    if (count > this.#recordsMax) this.#recordsMax = count
  }

  /** Adds a committed chunk. */
  add(key: string, value: Uint8Array): void {
    this.#bytes += value.length
    this.#values.set(key, value)
    if (this.#bytes > BYTES_MAX) this.dropAll()
  }

  /** Returns the largest number of records of one owner that were counted between two of the last three calls, or more. */
  takeRecordsMax(): number {
    const recordsMax = Math.max(this.#recordsMax, this.#previousRecordsMax)
    this.#previousRecordsMax = this.#recordsMax
    this.#recordCounts.fill(0)
    this.#recordsMax = 0
    return recordsMax
  }

  /** Returns the oldest chunks, up to a number and a size, but at least one. */
  first(countMax: number, bytesMax: number): UnmergedChunk[] {
    const chunks: UnmergedChunk[] = []
    let bytes = 0
    for (const [key, value] of this.#values) {
      bytes += value.length
      if (chunks.length === countMax || (bytes > bytesMax && chunks.length > 0)) break
      chunks.push({ key, value })
    }
    return chunks
  }

  /** Removes merged chunks. */
  remove(chunks: readonly UnmergedChunk[]): void {
    for (const { key, value } of chunks) if (this.#values.delete(key)) this.#bytes -= value.length
  }

  dropAll(): void {
    this.#values.clear()
    this.#bytes = 0
    this.#hasDropped = true
  }

  /** Returns whether chunks were dropped since the last call. */
  takeDropped(): boolean {
    const hasDropped = this.#hasDropped
    this.#hasDropped = false
    return hasDropped
  }
}

/** The last characters of uids are random, and those of most names are a number. */
const HASHED_CHARACTERS = 4

function hashOf(owner: string): number {
  const { length } = owner
  const hashed = Math.min(length, HASHED_CHARACTERS)
  let hash = 0
  for (let index = 1; index <= hashed; index++) hash = Math.imul(hash, 31) + owner.charCodeAt(length - index)
  return (hash ^ (hash >>> 16)) & (COUNTS - 1)
}
