// KeyIndex: all keys in order, each with its newest version, for lookups, range scans and range counts. It is a sorted array
// in chunks: an insert does not move all keys, and a count adds up whole chunks. Tombstones stay in the index until they are
// compacted (change-log.ts).
import type { Revision } from './store.ts'
import { type Version, versionAt } from './version.ts'

const CHUNK_KEYS_MAX = 512 // a larger chunk is split in two
const CHUNK_KEYS_LOADED = 384 // size of bulk-loaded chunks, with space for inserts

interface Chunk {
  /** Never empty. */
  versions: Version[]
  /** Number of versions that are not tombstones. */
  liveCount: number
  /** Upper bound of the revisions in this chunk. From this revision on, exactly `liveCount` keys exist. */
  newestRevision: Revision
}

export interface KeyRange {
  readonly prefix: string
  /** Only keys greater than this one. */
  readonly afterKey?: string
}

export class KeyIndex {
  #chunks: Chunk[] = []
  #liveCount = 0

  /** Bulk-loads an index from the newest version of each key, which is faster than calling set() for each. */
  static fromVersions(newestVersions: ReadonlyMap<string, Version>): KeyIndex {
    const keys = [...newestVersions.keys()].sort()
    const index = new KeyIndex()
    for (let position = 0; position < keys.length; position += CHUNK_KEYS_LOADED) {
      const chunk = createChunk(
        keys.slice(position, position + CHUNK_KEYS_LOADED).map((key) => newestVersions.get(key) as Version),
      )
      index.#chunks.push(chunk)
      index.#liveCount += chunk.liveCount
    }
    return index
  }

  /** The number of keys that exist, without tombstones. */
  get liveCount(): number {
    return this.#liveCount
  }

  get(key: string): Version | undefined {
    const chunk = this.#chunks[this.#chunkIndexOf(key)]
    const version = chunk?.versions[findFirstAtOrAfter(chunk.versions, key)]
    return version?.key === key ? version : undefined
  }

  /** Makes this its key's newest version. */
  set(version: Version): void {
    const chunkIndex = this.#chunkIndexOf(version.key)
    const chunk = this.#chunks[chunkIndex]
    if (!chunk) {
      this.#chunks.push(createChunk([version]))
      this.#liveCount += version.isDeleted ? 0 : 1
      return
    }

    const position = findFirstAtOrAfter(chunk.versions, version.key)
    const previousVersion = chunk.versions[position]?.key === version.key ? chunk.versions[position] : undefined
    if (previousVersion) chunk.versions[position] = version
    else chunk.versions.splice(position, 0, version)

    const liveDelta = (version.isDeleted ? 0 : 1) - (previousVersion && !previousVersion.isDeleted ? 1 : 0)
    chunk.liveCount += liveDelta
    this.#liveCount += liveDelta
    if (version.revision > chunk.newestRevision) chunk.newestRevision = version.revision
    if (chunk.versions.length > CHUNK_KEYS_MAX) this.#split(chunkIndex)
  }

  delete(key: string): void {
    const chunkIndex = this.#chunkIndexOf(key)
    const chunk = this.#chunks[chunkIndex]
    if (!chunk) return
    const position = findFirstAtOrAfter(chunk.versions, key)
    const version = chunk.versions[position]
    if (version?.key !== key) return
    if (!version.isDeleted) {
      chunk.liveCount--
      this.#liveCount--
    }
    if (chunk.versions.length === 1) this.#chunks.splice(chunkIndex, 1)
    else chunk.versions.splice(position, 1)
  }

  /** Visits the newest versions in the range in key order, tombstones included, until `visit` returns false. */
  scan(range: KeyRange, visit: (newest: Version) => boolean): void {
    let { chunkIndex, position } = this.#findStart(range)
    for (let chunk = this.#chunks[chunkIndex]; chunk; chunk = this.#chunks[++chunkIndex], position = 0) {
      for (; position < chunk.versions.length; position++) {
        const version = chunk.versions[position] as Version
        if (!version.key.startsWith(range.prefix) || !visit(version)) return
      }
    }
  }

  /** Returns the number of keys in the range that exist at a revision. */
  count(range: KeyRange, revision: Revision): number {
    let count = 0
    let { chunkIndex, position } = this.#findStart(range)
    for (let chunk = this.#chunks[chunkIndex]; chunk; chunk = this.#chunks[++chunkIndex], position = 0) {
      const isWhole = position === 0 && chunk.versions.at(-1)?.key.startsWith(range.prefix)
      if (isWhole && chunk.newestRevision <= revision) {
        count += chunk.liveCount
        continue
      }
      for (; position < chunk.versions.length; position++) {
        const version = chunk.versions[position] as Version
        if (!version.key.startsWith(range.prefix)) return count
        if (versionAt(version, revision)) count++
      }
    }
    return count
  }

  /** Returns where the first version of the range is, or would be. */
  #findStart({ prefix, afterKey }: KeyRange): { chunkIndex: number; position: number } {
    const isExclusive = afterKey !== undefined && afterKey >= prefix
    const startKey = isExclusive ? afterKey : prefix
    const chunkIndex = this.#chunkIndexOf(startKey)
    const versions = this.#chunks[chunkIndex]?.versions ?? []
    const position = findFirstAtOrAfter(versions, startKey)
    return { chunkIndex, position: isExclusive && versions[position]?.key === startKey ? position + 1 : position }
  }

  /** Returns the index of the last chunk whose first key is not after `key`, which is the only one that can contain it. */
  #chunkIndexOf(key: string): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      const firstVersion = (this.#chunks[middle] as Chunk).versions[0] as Version
      if (firstVersion.key <= key) low = middle
      else high = middle - 1
    }
    return low
  }

  #split(chunkIndex: number): void {
    const chunk = this.#chunks[chunkIndex] as Chunk
    const upperChunk = createChunk(chunk.versions.splice(chunk.versions.length >>> 1))
    chunk.liveCount -= upperChunk.liveCount
    this.#chunks.splice(chunkIndex + 1, 0, upperChunk)
  }
}

function createChunk(versions: Version[]): Chunk {
  let liveCount = 0
  let newestRevision = 0
  for (const version of versions) {
    if (!version.isDeleted) liveCount++
    if (version.revision > newestRevision) newestRevision = version.revision
  }
  return { versions, liveCount, newestRevision }
}

function findFirstAtOrAfter(versions: readonly Version[], key: string): number {
  let low = 0
  let high = versions.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((versions[middle] as Version).key < key) low = middle + 1
    else high = middle
  }
  return low
}
