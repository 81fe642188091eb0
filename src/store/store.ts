// The Store interface: revisions, atomic multi-key transactions, and watches that replay history.
// A store holds keys and bytes and does not depend on API objects. memory.ts, lmdb.ts and etcd/ implement it;
// store.contract.ts is the test that all of them pass.
//
// Every write has its own revision, and revisions increase: by one in the embedded stores; with gaps on etcd, where
// one etcd revision can hold a group of transactions. The writes of a transaction have consecutive revisions, in order,
// so that a watcher can resume after any of them. They become visible together: only a read at a revision between them
// shows a part. Everything readable is durable: no read or watch shows a write that a power failure could undo.

export type Revision = number

export interface Entry {
  readonly key: string
  /** Shared with other readers; must not be modified. */
  readonly value: Uint8Array
  /** Revision of the last write to this key. */
  readonly modRevision: Revision
  /** Revision of the write that created this key, since it was last deleted. */
  readonly createRevision: Revision
  /** Set only in a transaction that reads a coalescable put of its own group commit: that put. */
  readonly coalescable?: Put
}

export type Write = Put | { readonly delete: string }

export const keyOfWrite = (write: Write): string => ('put' in write ? write.put : write.delete)

export interface Put {
  readonly put: string
  /** Owned by the store once passed in: it is shared, not copied, so the caller must not modify it. */
  readonly value: Uint8Array
  /** The store deletes the key after this time (clock.nowMs). Every put sets or clears it. */
  readonly expiresAtMs?: number
  /**
   * For running totals that many transactions rewrite, such as quota usage. If a later put of the same group commit
   * supersedes this one, only the later one is kept, and this one's revision shows no change. Default: every put is kept.
   * `value` may then be a getter; the store calls it only for puts that are kept or read. It must not throw, and the value
   * should be small, because it does not count towards the size limits of a transaction or a group commit.
   */
  readonly isCoalescable?: boolean
}

/** The state that a transaction reads: the newest, including earlier transactions of the same group commit. */
export interface TransactionView {
  get(key: string): Entry | undefined
  /**
   * All entries below a prefix, in key order. Unlike `get`, this adds no condition to the commit: if several servers share
   * the store, an entry may change or appear before the transaction commits. Use `get` for keys that must not change.
   */
  list(prefix: string): readonly Entry[]
}

/**
 * Computes the writes of a transaction, synchronously and without side effects. The store may call it more than once.
 * If it throws, nothing is written and transact() rejects with that error.
 * Deleting a key that does not exist is not a write; a transaction without writes creates no revision.
 * A transaction may write each key only once.
 */
export type Decide = (view: TransactionView) => readonly Write[]

export interface ListOptions {
  readonly prefix: string
  /** Only keys greater than this one, for paging. */
  readonly after?: string
  readonly limit?: number
  /** Read as of this revision. Throws CompactedError if it is no longer kept, FutureRevisionError if it does not exist yet. */
  readonly atRevision?: Revision
}

export interface ListResult {
  /** In key order, as JavaScript compares strings (for ASCII keys: byte order). */
  readonly entries: readonly Entry[]
  /** The revision of the list: it includes every write up to this revision and none after it. */
  readonly revision: Revision
  /** Whether there are entries beyond `limit`; `remaining` is their number. */
  readonly more: boolean
  readonly remaining: number
}

/** A change of one key. All watchers receive the same object, so that encoded forms can be cached by its identity. */
export interface StoreEvent {
  readonly type: 'put' | 'delete'
  readonly key: string
  readonly revision: Revision
  /** The new state; absent for a delete. */
  readonly entry?: Entry
  /** The state before the change; absent if the change created the key. */
  readonly previous?: Entry
}

export interface WatchOptions {
  readonly prefix: string
  /** Deliver the changes after this revision, oldest first, without gaps or duplicates. */
  readonly afterRevision: Revision
  /**
   * Called with changes in revision order; a transaction that commits during the watch is delivered in one call.
   * Never called re-entrantly, before watch() has returned, or after close(). Must not throw.
   */
  readonly onEvents: (events: readonly StoreEvent[]) => void
  /** The store ended the watch: compaction overtook it, or the store was closed or failed. Called at most once. */
  readonly onEnd: (reason: Error) => void
}

export interface Watch {
  /** All matching changes up to this revision have been delivered; advances even if none match the prefix. */
  readonly revision: Revision
  close(): void
}

export interface Transacted {
  /** The revision of the last write; without writes, the revision that the transaction read. */
  readonly revision: Revision
  /** One revision per write, in order; 0 for the delete of a key that did not exist. */
  readonly revisions: readonly Revision[]
}

export interface Store {
  /** The newest durable revision. */
  readonly revision: Revision
  get(key: string): Promise<Entry | undefined>
  list(options: ListOptions): Promise<ListResult>
  /**
   * Resolves with the revisions of the writes once they are durable and readable. Rejects with
   *   the error that `decide` threw;
   *   WriteRefusedError       the storage wrote nothing, for example because the disk is full;
   *   StoreBusyError          too many transactions are pending;
   *   StoreUnavailableError   the storage cannot be reached;
   *   StoreClosedError        the store was closed or failed.
   * The writes may have been persisted after StoreClosedError, and after StoreUnavailableError with `mayBeWritten`.
   * With any other error nothing was written.
   */
  transact(decide: Decide): Promise<Transacted>
  /**
   * Throws CompactedError if changes after `afterRevision` are no longer kept for that prefix, and FutureRevisionError if
   * `afterRevision` does not exist yet.
   */
  watch(options: WatchOptions): Watch
  /** Values for /metrics. */
  stats(): StoreStats
  /** Why the store cannot write at the moment, if so; for /readyz, so without paths or addresses. Settles within seconds. */
  problem?(): Promise<string | undefined>
  /** Calls the listener after every durable commit. */
  onCommit?(listener: CommitListener): void
  /** Waits for accepted transactions, then releases all resources. Later calls fail with StoreClosedError. */
  close(): Promise<void>
}

/** How long a commit took, and how many writes it held. */
export type CommitListener = (seconds: number, writes: number) => void

export interface StoreStats {
  readonly keys: number
  readonly revision: Revision
  /** The oldest revision that can still be listed or watched from (outside `brief` prefixes). */
  readonly compactedRevision: Revision
  /** Superseded states that are kept for watches and for reads at old revisions. */
  readonly historyEntries: number
  readonly bytesOnDisk: number
  readonly watchers: number
}

/** How much history a store keeps. Ages count from when the store was opened. */
export interface HistoryOptions {
  /** Superseded states are kept at least this long, unless entriesMax is exceeded. Default 5 minutes. */
  readonly keepMs?: number
  /** Beyond this number of superseded states the oldest are compacted, regardless of their age. Default 100,000. */
  readonly entriesMax?: number
  /** Prefixes of keys that change often and are rarely replayed (leases, events), with separate limits. */
  readonly brief?: { readonly prefixes: readonly string[]; readonly keepMs: number; readonly entriesMax: number }
}

export class CompactedError extends Error {
  override readonly name = 'CompactedError'
  readonly compactedRevision: Revision
  constructor(compactedRevision: Revision) {
    super(`revisions before ${compactedRevision} have been compacted`)
    this.compactedRevision = compactedRevision
  }
}

export class FutureRevisionError extends Error {
  override readonly name = 'FutureRevisionError'
  readonly asked: Revision
  readonly newest: Revision
  constructor(asked: Revision, newest: Revision) {
    super(`revision ${asked} does not exist yet; the newest is ${newest}`)
    this.asked = asked
    this.newest = newest
  }
}

export class StoreClosedError extends Error {
  override readonly name = 'StoreClosedError'
  constructor(why = 'the store is closed') {
    super(why)
  }
}

export class StoreBusyError extends Error {
  override readonly name = 'StoreBusyError'
  constructor(waiting: number) {
    super(`${waiting} transactions are already waiting to be written; retry later`)
  }
}

/** The storage cannot be reached at the moment; later calls may succeed. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'
  /** The response was lost, so the writes of this transaction may have been committed. */
  readonly mayBeWritten: boolean
  constructor(because: string, { mayBeWritten = false } = {}) {
    super(`the store is unavailable: ${because}${mayBeWritten ? '; the write may or may not have been committed' : ''}`)
    this.mayBeWritten = mayBeWritten
  }
}

/** The storage wrote nothing of the transaction: it is not visible now and will not be after a restart. */
export class WriteRefusedError extends Error {
  override readonly name = 'WriteRefusedError'
  constructor(because: string, cause?: unknown) {
    super(`nothing was written: ${because}`, { cause })
  }
}
