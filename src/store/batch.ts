// Decides the transactions of one group commit, one after the other, each seeing the writes of those before it.
// Nothing here is durable or visible yet: revisioned-store.ts writes `records` and then applies `changes`, or,
// if the medium refuses them, forgets this batch.
import type { KeyIndex } from './key-index.ts'
import type { MediumRecord } from './medium.ts'
import { entryOfPut } from './put-entry.ts'
import {
  type Decide,
  type Entry,
  keyOfWrite,
  type Revision,
  type Transacted,
  type TransactionView,
  type Write,
} from './store.ts'
import type { Version } from './version.ts'

export const KEY_LENGTH_MAX = 4_096 // a longer key is refused
export const TRANSACTION_BYTES_MAX = 64 * 1024 * 1024 // a larger transaction is refused

export type Outcome =
  | ({ readonly is: 'written' } & Transacted)
  | ({ readonly is: 'unchanged' } & Transacted)
  | { readonly is: 'refused'; readonly error: unknown }

export interface BatchOptions {
  readonly index: KeyIndex
  /** The newest durable revision. */
  readonly revision: Revision
  readonly readEntry: (version: Version) => Entry
}

const NO_VALUE = new Uint8Array(0)

export class Batch {
  readonly #changes: Version[] = []
  /** Versions of this batch that may be left out if their key is put again, and where they stand in `#changes`. */
  readonly #passing = new Map<Version, number>()
  readonly #passed = new Set<number>()
  readonly #options: BatchOptions
  /** The newest version of every key this batch has looked at. */
  readonly #newest = new Map<string, Version | undefined>()
  readonly #entries = new Map<Version, Entry>()
  /** The keys below every prefix this batch has listed, kept up to date, so that listing again costs what it finds. */
  readonly #listed = new Map<string, { readonly keys: Set<string>; sorted: readonly string[] | undefined }>()
  readonly #view: TransactionView
  #revision: Revision
  #bytes = 0

  constructor(options: BatchOptions) {
    this.#options = options
    this.#revision = options.revision
    this.#view = { get: (key) => this.#get(key), list: (prefix) => this.#list(prefix) }
  }

  /** The new versions, in order. */
  get changes(): readonly Version[] {
    return this.#passed.size === 0 ? this.#changes : this.#changes.filter((_, at) => !this.#passed.has(at))
  }

  /** What is to be written, once everything is decided. */
  records(): MediumRecord[] {
    return this.changes.map((version) => {
      const { key, revision, createRevision, expiresAtMs, deleted } = version
      const entry = this.#entries.get(version)
      const value = entry?.value ?? NO_VALUE
      // It has stopped passing; whoever is shown it later sees bytes like any others.
      if (entry?.passing) this.#entries.set(version, { key, value, modRevision: revision, createRevision })
      return { key, revision, createRevision, expiresAtMs, deleted, value }
    })
  }

  get bytes(): number {
    return this.#bytes
  }

  run(decide: Decide): Outcome {
    let writes: readonly Write[]
    try {
      writes = decide(this.#view)
      checkWrites(writes)
    } catch (error) {
      return { is: 'refused', error }
    }
    const before = this.#revision
    const revisions = writes.map((write) => ('put' in write || this.#exists(write.delete) ? this.#add(write) : 0))
    return { is: this.#revision > before ? 'written' : 'unchanged', revision: this.#revision, revisions }
  }

  /** The entry a version stands for, if this batch wrote or has read it. */
  entryOf(version: Version): Entry | undefined {
    return this.#entries.get(version)
  }

  #get(key: string): Entry | undefined {
    const version = this.#newestOf(key)
    if (!version || version.deleted) return undefined
    let entry = this.#entries.get(version)
    if (!entry) {
      entry = this.#options.readEntry(version)
      this.#entries.set(version, entry)
    }
    return entry
  }

  #list(prefix: string): readonly Entry[] {
    let listed = this.#listed.get(prefix)
    if (!listed) {
      const keys = new Set<string>()
      this.#options.index.scan({ prefix }, ({ key }) => {
        keys.add(key)
        return true
      })
      for (const key of this.#newest.keys()) if (key.startsWith(prefix)) keys.add(key)
      listed = { keys, sorted: undefined }
      this.#listed.set(prefix, listed)
    }
    listed.sorted ??= [...listed.keys].sort()
    const entries: Entry[] = []
    for (const key of listed.sorted) {
      const entry = this.#get(key)
      if (entry) entries.push(entry)
    }
    return entries
  }

  #exists(key: string): boolean {
    return this.#newestOf(key)?.deleted === false
  }

  #newestOf(key: string): Version | undefined {
    const known = this.#newest.get(key)
    if (known || this.#newest.has(key)) return known
    const newest = this.#options.index.get(key)
    this.#newest.set(key, newest)
    return newest
  }

  #add(write: Write): Revision {
    const revision = ++this.#revision
    const deleted = 'delete' in write
    const key = deleted ? write.delete : write.put
    const superseded = this.#newestOf(key)
    const previous = superseded && !deleted && this.#pass(superseded) ? superseded.previous : superseded
    const version: Version = {
      key,
      revision,
      createRevision: superseded && !superseded.deleted ? superseded.createRevision : revision,
      expiresAtMs: deleted ? undefined : write.expiresAtMs,
      deleted,
      previous,
    }
    this.#newest.set(key, version)
    for (const [prefix, listed] of this.#listed) {
      if (!key.startsWith(prefix) || listed.keys.has(key)) continue
      listed.keys.add(key)
      listed.sorted = undefined
    }
    if (!deleted && write.isPassing) this.#passing.set(version, this.#changes.length)
    this.#changes.push(version)
    if (!deleted) this.#entries.set(version, entryOfPut(write, version.revision, version.createRevision))
    this.#bytes += bytesOf(write)
    return revision
  }

  /** Leaves out a passing version that is being superseded; answers whether it was one. */
  #pass(version: Version): boolean {
    const at = this.#passing.get(version)
    // One that created its key stays: the new state would otherwise seem to change what watchers never heard of.
    if (at === undefined || !version.previous || version.previous.deleted) return false
    this.#passing.delete(version)
    this.#passed.add(at)
    return true
  }
}

function bytesOf(write: Write): number {
  if ('delete' in write) return write.delete.length
  return write.put.length + (write.isPassing ? 0 : write.value.length)
}

/** Refuses what no store could keep. */
export function checkWrites(writes: readonly Write[]): void {
  let bytes = 0
  for (const write of writes) {
    checkKey(keyOfWrite(write))
    bytes += bytesOf(write)
  }
  if (bytes > TRANSACTION_BYTES_MAX) {
    throw new Error(`A transaction may hold ${TRANSACTION_BYTES_MAX} bytes; this one has ${bytes}.`)
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
    throw new Error(`A key may be ${KEY_LENGTH_MAX} characters long; "${key.slice(0, 64)}…" has ${key.length}.`)
  }
  // A lone surrogate has no UTF-8 form: it would come back from the disk as another key.
  if (!key.isWellFormed()) throw new Error(`The key "${key}" is not well-formed text.`)
}
