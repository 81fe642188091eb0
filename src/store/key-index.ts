// KeyIndex: all keys in order, each with its newest version, for lookups, range scans and range counts. It is a sorted array
// in chunks: an insert moves at most one chunk, and a count adds up whole chunks. Tombstones stay in the index until they
// are compacted (change-log.ts).
import type { Revision } from './store.ts'
import { type Version, versionAt } from './version.ts'

const CHUNK_KEYS_MAX = 512 // a larger chunk is split in two
const CHUNK_KEYS_LOADED = 384 // size of bulk-loaded chunks, with space for inserts

interface Chunk {
  /** Never empty. */
  versions: Version[]
  /** Number of versions that are not tombstones. */
  live: number
  /** Upper bound of the revisions in this chunk. From this revision on, exactly `live` keys exist. */
  newestRevision: Revision
}

export interface KeyRange {
  readonly prefix: string
  /** Only keys greater than this one. */
  readonly after?: string
}

export class KeyIndex {
  #chunks: Chunk[] = []
  #live = 0

  /** Bulk-loads an index from the newest version of each key; several times faster than calling set() for each. */
  static of(newest: ReadonlyMap<string, Version>): KeyIndex {
    const keys = [...newest.keys()].sort()
    const index = new KeyIndex()
    for (let at = 0; at < keys.length; at += CHUNK_KEYS_LOADED) {
      const chunk = createChunk(keys.slice(at, at + CHUNK_KEYS_LOADED).map((key) => newest.get(key) as Version))
      index.#chunks.push(chunk)
      index.#live += chunk.live
    }
    return index
  }

  /** The number of keys that exist, without tombstones. */
  get live(): number {
    return this.#live
  }

  get(key: string): Version | undefined {
    const chunk = this.#chunks[this.#chunkOf(key)]
    const version = chunk?.versions[firstAtOrAfter(chunk.versions, key)]
    return version?.key === key ? version : undefined
  }

  /** Makes this the newest version of its key. */
  set(version: Version): void {
    const chunkAt = this.#chunkOf(version.key)
    const chunk = this.#chunks[chunkAt]
    if (!chunk) {
      this.#chunks.push(createChunk([version]))
      this.#live += version.deleted ? 0 : 1
      return
    }

    const at = firstAtOrAfter(chunk.versions, version.key)
    const previous = chunk.versions[at]?.key === version.key ? chunk.versions[at] : undefined
    if (previous) chunk.versions[at] = version
    else chunk.versions.splice(at, 0, version)

    const liveDelta = (version.deleted ? 0 : 1) - (previous && !previous.deleted ? 1 : 0)
    chunk.live += liveDelta
    this.#live += liveDelta
    if (version.revision > chunk.newestRevision) chunk.newestRevision = version.revision
    if (chunk.versions.length > CHUNK_KEYS_MAX) this.#split(chunkAt)
  }

  delete(key: string): void {
    const chunkAt = this.#chunkOf(key)
    const chunk = this.#chunks[chunkAt]
    if (!chunk) return
    const at = firstAtOrAfter(chunk.versions, key)
    const version = chunk.versions[at]
    if (version?.key !== key) return
    if (!version.deleted) {
      chunk.live--
      this.#live--
    }
    if (chunk.versions.length === 1) this.#chunks.splice(chunkAt, 1)
    else chunk.versions.splice(at, 1)
  }

  /** Visits the newest versions in the range in key order, tombstones included, until `visit` returns false. */
  scan(range: KeyRange, visit: (newest: Version) => boolean): void {
    let { chunkAt, at } = this.#start(range)
    for (let chunk = this.#chunks[chunkAt]; chunk; chunk = this.#chunks[++chunkAt], at = 0) {
      for (; at < chunk.versions.length; at++) {
        const version = chunk.versions[at] as Version
        if (!version.key.startsWith(range.prefix) || !visit(version)) return
      }
    }
  }

  /** Returns the number of keys in the range that exist at a revision. */
  count(range: KeyRange, revision: Revision): number {
    let count = 0
    let { chunkAt, at } = this.#start(range)
    for (let chunk = this.#chunks[chunkAt]; chunk; chunk = this.#chunks[++chunkAt], at = 0) {
      const isWhole = at === 0 && chunk.versions.at(-1)?.key.startsWith(range.prefix)
      if (isWhole && chunk.newestRevision <= revision) {
        count += chunk.live
        continue
      }
      for (; at < chunk.versions.length; at++) {
        const version = chunk.versions[at] as Version
        if (!version.key.startsWith(range.prefix)) return count
        if (versionAt(version, revision)) count++
      }
    }
    return count
  }

  #start({ prefix, after }: KeyRange): { chunkAt: number; at: number } {
    const isExclusive = after !== undefined && after >= prefix
    const startKey = isExclusive ? after : prefix
    const chunkAt = this.#chunkOf(startKey)
    const versions = this.#chunks[chunkAt]?.versions ?? []
    const at = firstAtOrAfter(versions, startKey)
    return { chunkAt, at: isExclusive && versions[at]?.key === startKey ? at + 1 : at }
  }

  /** Returns the index of the last chunk whose first key is not after `key`, which is the only one that can contain it. */
  #chunkOf(key: string): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      const first = (this.#chunks[middle] as Chunk).versions[0] as Version
      if (first.key <= key) low = middle
      else high = middle - 1
    }
    return low
  }

  #split(chunkAt: number): void {
    const chunk = this.#chunks[chunkAt] as Chunk
    const upper = createChunk(chunk.versions.splice(chunk.versions.length >>> 1))
    chunk.live -= upper.live
    this.#chunks.splice(chunkAt + 1, 0, upper)
  }
}

function createChunk(versions: Version[]): Chunk {
  let live = 0
  let newestRevision = 0
  for (const version of versions) {
    if (!version.deleted) live++
    if (version.revision > newestRevision) newestRevision = version.revision
  }
  return { versions, live, newestRevision }
}

function firstAtOrAfter(versions: readonly Version[], key: string): number {
  let low = 0
  let high = versions.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((versions[middle] as Version).key < key) low = middle + 1
    else high = middle
  }
  return low
}
