// Batch runs the transactions of a group commit in order, each on the result of the previous one. The changes are neither
// durable nor visible: revisioned-store.ts writes records() to the medium and then applies `changes`, or discards the batch
// if the write fails.

import type { KeyIndex } from './key-index.ts'
import type { MediumRecord } from './medium.ts'
import { entryOfPut } from './put-entry.ts'
import { checksumOf } from './records/checksum.ts'
import {
  type Decide,
  type Entry,
  keyOfWrite,
  type Revision,
  type TransactionResult,
  type TransactionView,
  type Write,
} from './store.ts'
import type { Version } from './version.ts'

const KEY_LENGTH_MAX = 4_096 // a transaction with a longer key is rejected
const TRANSACTION_BYTES_MAX = 64 * 1024 * 1024 // a larger transaction is rejected

export type Outcome =
  | ({ readonly is: 'written' } & TransactionResult)
  | ({ readonly is: 'unchanged' } & TransactionResult)
  | { readonly is: 'threw'; readonly error: unknown }

export interface BatchOptions {
  readonly index: KeyIndex
  /** The newest durable revision. */
  readonly revision: Revision
  readonly readEntry: (version: Version) => Entry
}

const NO_VALUE = new Uint8Array(0)

export class Batch implements TransactionView {
  readonly #changes: Version[] = []
  /** Coalescable versions of this batch, with their index in `#changes`. */
  readonly #coalescableVersions = new Map<Version, number>()
  readonly #coalescedIndexes = new Set<number>()
  readonly #options: BatchOptions
  /** The newest version of every key that this batch has read or written. */
  readonly #newestVersions = new Map<string, Version | undefined>()
  readonly #entries = new Map<Version, Entry>()
  /** The keys below each listed prefix, which every write updates, so that repeated lists do not scan the index. */
  readonly #listings = new Map<string, { readonly keys: Set<string>; sortedKeys: readonly string[] | undefined }>()
  #revision: Revision
  #bytes = 0

  constructor(options: BatchOptions) {
    this.#options = options
    this.#revision = options.revision
  }

  /** The new versions in revision order, without those that were coalesced. */
  get changes(): readonly Version[] {
    return this.#coalescedIndexes.size === 0
      ? this.#changes
      : this.#changes.filter((_, index) => !this.#coalescedIndexes.has(index))
  }

  /**
   * Returns the records to write, after all transactions have run, and sets the checksums and sizes of their versions. `encode`
   * returns the bytes to store for a value; without it they are the value.
   */
  records(encode?: (key: string, value: Uint8Array) => Uint8Array): MediumRecord[] {
    const records: MediumRecord[] = []
    for (const version of this.changes) records.push(this.#record(version, encode))
    return records
  }

  #record(version: Version, encode: ((key: string, value: Uint8Array) => Uint8Array) | undefined): MediumRecord {
    const { key, revision, createRevision, expiresAtMs, isDeleted } = version
    const entry = this.#entries.get(version)
    const value = entry?.value ?? NO_VALUE
    const storedBytes = isDeleted ? NO_VALUE : encode ? encode(key, value) : value
    version.checksum = checksumOf(storedBytes)
    version.valueBytes = storedBytes.length
    // The entry is no longer coalescable, so watchers receive a plain entry with these bytes.
    if (entry?.coalescablePut) this.#entries.set(version, { key, value, modRevision: revision, createRevision })
    const { checksum, valueBytes } = version
    return { key, revision, createRevision, expiresAtMs, isDeleted, checksum, valueBytes, value: storedBytes }
  }

  get bytes(): number {
    return this.#bytes
  }

  run(decide: Decide): Outcome {
    let writes: readonly Write[]
    try {
      writes = decide(this)
      checkWrites(writes)
    } catch (error) {
      return { is: 'threw', error }
    }
    const previousRevision = this.#revision
    const revisions: Revision[] = []
    for (const write of writes) revisions.push('put' in write || this.#exists(write.delete) ? this.#add(write) : 0)
    return { is: this.#revision > previousRevision ? 'written' : 'unchanged', revision: this.#revision, revisions }
  }

  /** Returns the entry of a version that this batch has written or read. */
  entryOf(version: Version): Entry | undefined {
    return this.#entries.get(version)
  }

  /** Returns the newest entry of a key, for the transaction that is being decided. */
  get(key: string): Entry | undefined {
    const version = this.#newestOf(key)
    if (!version || version.isDeleted) return undefined
    let entry = this.#entries.get(version)
    if (!entry) {
      entry = this.#options.readEntry(version)
      this.#entries.set(version, entry)
    }
    return entry
  }

  /** Returns the newest entries below a prefix, for the transaction that is being decided. */
  list(prefix: string): readonly Entry[] {
    let listing = this.#listings.get(prefix)
    if (!listing) {
      const keys = new Set<string>()
      this.#options.index.scan({ prefix }, ({ key }) => {
        keys.add(key)
        return true
      })
      for (const key of this.#newestVersions.keys()) if (key.startsWith(prefix)) keys.add(key)
      listing = { keys, sortedKeys: undefined }
      this.#listings.set(prefix, listing)
    }
    listing.sortedKeys ??= [...listing.keys].sort()
    const entries: Entry[] = []
    for (const key of listing.sortedKeys) {
      const entry = this.get(key)
      if (entry) entries.push(entry)
    }
    return entries
  }

  #exists(key: string): boolean {
    return this.#newestOf(key)?.isDeleted === false
  }

  #newestOf(key: string): Version | undefined {
    const cachedVersion = this.#newestVersions.get(key)
    if (cachedVersion || this.#newestVersions.has(key)) return cachedVersion
    const newestVersion = this.#options.index.get(key)
    this.#newestVersions.set(key, newestVersion)
    return newestVersion
  }

  #add(write: Write): Revision {
    const revision = ++this.#revision
    const isDeleted = 'delete' in write
    const writtenKey = isDeleted ? write.delete : write.put
    const supersededVersion = this.#newestOf(writtenKey)
    const key = supersededVersion?.key ?? writtenKey // all versions of a key share one string
    const coalescedVersion =
      supersededVersion && !isDeleted && this.#coalesce(supersededVersion) ? supersededVersion : undefined
    const previous = coalescedVersion ? coalescedVersion.previous : supersededVersion
    const version: Version = {
      key,
      revision,
      createRevision: previous && !previous.isDeleted ? previous.createRevision : revision,
      expiresAtMs: isDeleted ? undefined : write.expiresAtMs,
      isDeleted,
      checksum: 0,
      valueBytes: 0,
      previous,
    }
    this.#newestVersions.set(key, version)
    for (const [prefix, listing] of this.#listings) {
      if (!key.startsWith(prefix) || listing.keys.has(key)) continue
      listing.keys.add(key)
      listing.sortedKeys = undefined
    }
    // Without isCreationCoalescable, keep a version that creates its key: watchers must receive the creation with its revision.
    if (!isDeleted && write.isCoalescable && (write.isCreationCoalescable || (previous && !previous.isDeleted)))
      this.#coalescableVersions.set(version, this.#changes.length)
    this.#changes.push(version)
    if (!isDeleted) this.#entries.set(version, entryOfPut(write, version.revision, version.createRevision))
    this.#bytes += bytesOf(write)
    return revision
  }

  /** Drops a coalescable version that a put supersedes. Returns whether it was dropped. */
  #coalesce(version: Version): boolean {
    const index = this.#coalescableVersions.get(version)
    if (index === undefined) return false
    this.#coalescableVersions.delete(version)
    this.#coalescedIndexes.add(index)
    return true
  }
}

function bytesOf(write: Write): number {
  if ('delete' in write) return write.delete.length
  return write.put.length + (write.isCoalescable ? 0 : write.value.length)
}

/** Throws if the writes violate a limit that all stores share. */
export function checkWrites(writes: readonly Write[]): void {
  let bytes = 0
  for (const write of writes) {
    checkKey(keyOfWrite(write))
    bytes += bytesOf(write)
  }
  if (bytes > TRANSACTION_BYTES_MAX) {
    throw new Error(`A transaction may hold at most ${TRANSACTION_BYTES_MAX} bytes; this one has ${bytes}.`)
  }
  if (writes.length < 2 || (writes.length === 2 && keyOfWrite(writes[0]!) !== keyOfWrite(writes[1]!))) return
  const keys = new Set<string>()
  for (const write of writes) {
    const key = keyOfWrite(write)
    if (keys.has(key)) throw new Error(`A transaction may write each key once; this one writes "${key}" twice.`)
    keys.add(key)
  }
}

function checkKey(key: string): void {
  if (key === '') throw new Error('A key may not be empty.')
  if (key.length > KEY_LENGTH_MAX) {
    throw new Error(`A key may have at most ${KEY_LENGTH_MAX} characters; "${key.slice(0, 64)}…" has ${key.length}.`)
  }
  // A lone surrogate has no UTF-8 encoding, so the key would change when it is read from disk.
  if (!key.isWellFormed()) throw new Error(`The key "${key}" is not well-formed Unicode.`)
}
