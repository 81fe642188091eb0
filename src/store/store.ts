// The Store interface: keys and bytes with revisions, atomic multi-key transactions, and watches that replay history.
// memory.ts, lmdb.ts and etcd/ implement it; store.contract.ts contains their common tests.
//
// Every write has its own revision, except that a coalescable put may share that of the put that supersedes it. Revisions
// increase by one in the embedded stores, and with gaps on etcd, where an etcd revision can contain a group of transactions.
// A transaction's writes have increasing revisions, so that a watcher can resume after any of them. They become visible
// together, except for reads at a revision between them. Reads and watches return only durable writes.

export type Revision = number

export interface Entry {
  readonly key: string
  /** Shared with other readers; must not be modified. */
  readonly value: Uint8Array
  /** Revision of the last write to this key. */
  readonly modRevision: Revision
  /** Revision of the write that created this key after its last deletion. */
  readonly createRevision: Revision
  /** The bytes in storage, if a ValueTransformer applies to this key. */
  readonly storedBytes?: Uint8Array
  /** Whether a write of the same value would be stored in another way, for example encrypted with a newer key. */
  readonly isStale?: boolean
  /** The coalescable put, if a transaction reads one of its own group commit. */
  readonly coalescablePut?: Put
}

export type Write = Put | { readonly delete: string }

export const keyOfWrite = (write: Write): string => ('put' in write ? write.put : write.delete)

export interface Put {
  readonly put: string
  /** The store shares the value instead of copying it, so the caller must not modify it. */
  readonly value: Uint8Array
  /** The store deletes the key after this time (clock.nowMs). Every put sets or clears it. */
  readonly expiresAtMs?: number
  /**
   * For totals that many transactions rewrite, such as a quota's usage. If a later put of the same group commit
   * supersedes this one, only the later one is kept. Default: false.
   * `value` may then be a getter, which the store calls only for puts that are kept or read. It must not throw, and the
   * value should be small, because it does not count towards the size limits of a transaction or a group commit.
   */
  readonly isCoalescable?: boolean
  /**
   * Whether a coalescable put that creates its key may also be dropped. Watchers then receive the creation with the revision and
   * value of the last put. Default: false, because the revision of the creation may have been returned to a client.
   */
  readonly isCreationCoalescable?: boolean
}

/** The state that a transaction reads, which includes earlier transactions of the same group commit. */
export interface TransactionView {
  get(key: string): Entry | undefined
  /**
   * Returns all entries below a prefix, in key order. Unlike `get`, this adds no condition to the commit: if several servers
   * share the store, an entry may change or appear before the transaction commits. Use `get` for keys that must not change.
   */
  list(prefix: string): readonly Entry[]
}

/**
 * Computes a transaction's writes, synchronously and without side effects. The store may call it more than once.
 * If it throws, nothing is written and transact() rejects with that error.
 * Deleting a key that does not exist is not a write; a transaction without writes creates no revision.
 * A transaction may write each key only once.
 */
export type Decide = (view: TransactionView) => readonly Write[]

export interface ListOptions {
  readonly prefix: string
  /** Only keys greater than this one, for paging. */
  readonly afterKey?: string
  readonly limit?: number
  /** The revision to read. Throws CompactedError if it is compacted, and FutureRevisionError if it does not exist yet. */
  readonly atRevision?: Revision
}

export interface ListResult {
  /** The entries in key order, as JavaScript compares strings. */
  readonly entries: readonly Entry[]
  /** The revision of the list, which includes all writes up to this revision. */
  readonly revision: Revision
  /** Whether there are entries beyond `limit`; `remainingCount` is their number. */
  readonly hasMore: boolean
  readonly remainingCount: number
}

/** A change of one key. Watchers share the object of a recent change, so that encoded forms can be cached by its identity. */
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
   * Never called re-entrantly, before watch() has returned, or after close(). If it throws, the watch ends; the reason is the
   * DamagedRecordError of an event, or an error with the cause.
   */
  readonly onEvents: (events: readonly StoreEvent[]) => void
  /** Called at most once, if the store ends the watch. */
  readonly onEnd: (reason: Error) => void
}

export interface Watch {
  /** The revision up to which all matching changes have been delivered. It advances even if no change matches. */
  readonly revision: Revision
  close(): void
}

export interface TransactionResult {
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
   * Resolves with the revisions of the writes when they are durable and readable. Rejects with
   *   the error that `decide` threw;
   *   WriteRejectedError      the storage wrote nothing, for example because the disk is full;
   *   StoreBusyError          too many transactions are pending;
   *   StoreUnavailableError   the storage cannot be reached;
   *   StoreClosedError        the store was closed or failed.
   * The writes may have been persisted after StoreClosedError, and after StoreUnavailableError with `mayBeWritten`.
   * With any other error nothing was written.
   */
  transact(decide: Decide): Promise<TransactionResult>
  /**
   * Throws CompactedError if changes after `afterRevision` are no longer kept for that prefix, and FutureRevisionError if
   * `afterRevision` does not exist yet.
   */
  watch(options: WatchOptions): Watch
  /** Values for /metrics. */
  stats(): StoreStats
  /**
   * Resolves within seconds: with the problem if the store cannot write or etcd does not respond, otherwise with undefined. The
   * text is public and contains no paths or addresses.
   */
  problem?(): Promise<string | undefined>
  /** Returns the damaged records that are known. */
  damagedRecords?(): readonly DamagedRecordError[]
  /** Calls the listener after every durable commit. */
  onCommit?(listener: CommitListener): void
  /** Waits for accepted transactions, then releases all resources. Later calls fail with StoreClosedError. */
  close(): Promise<void>
}

/** Receives the duration of a commit and the number of its writes. */
export type CommitListener = (seconds: number, writeCount: number) => void

export interface StoreStats {
  readonly keys: number
  readonly revision: Revision
  /** The oldest revision that can still be listed or watched from (outside `brief` prefixes). */
  readonly compactedRevision: Revision
  /** Superseded states and tombstones that are kept for watches and for reads at old revisions. */
  readonly historyEntries: number
  /** Bytes of the values of these states. */
  readonly historyBytes: number
  readonly bytesOnDisk: number
  readonly watchers: number
  /** Stored records that are known to be damaged. */
  readonly damagedRecords: number
  /** The progress of the scrub, if one runs. */
  readonly scrub?: ScrubStats
}

/** The progress of reading all records in the background. */
export interface ScrubStats {
  /** The number of complete passes since the start. */
  readonly passes: number
  readonly bytes: number
  /** The part of the current pass that is done, from 0 to 1. */
  readonly progress: number
}

/** The history that a store keeps. The age of a change starts when it is made or the store is opened. */
export interface HistoryOptions {
  /** Superseded states are kept at least this long, unless entriesMax or bytesMax is exceeded. Default 5 minutes. */
  readonly keepMs?: number
  /** Beyond this number of superseded states the oldest are compacted, regardless of their age. Default 100,000. */
  readonly entriesMax?: number
  /** Beyond this size of the values of superseded states the oldest are compacted. Default 64 MiB. */
  readonly bytesMax?: number
  /** Prefixes of keys with separate limits, for keys that change often. */
  readonly brief?: {
    readonly prefixes: readonly string[]
    readonly keepMs: number
    readonly entriesMax: number
    /** Default: the limit for other keys. */
    readonly bytesMax?: number
  }
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
  readonly requestedRevision: Revision
  readonly newestRevision: Revision
  constructor(requested: Revision, newest: Revision) {
    super(`revision ${requested} does not exist yet; the newest is ${newest}`)
    this.requestedRevision = requested
    this.newestRevision = newest
  }
}

export class StoreClosedError extends Error {
  override readonly name = 'StoreClosedError'
  constructor(message = 'the store is closed') {
    super(message)
  }
}

export class StoreBusyError extends Error {
  override readonly name = 'StoreBusyError'
  constructor(pendingCount: number) {
    super(`${pendingCount} transactions are already waiting to be written; retry later`)
  }
}

/** Thrown if the storage cannot be reached. Later calls may succeed. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'
  /** Whether the response was lost, so that this transaction's writes may have been committed. */
  readonly mayBeWritten: boolean
  constructor(detail: string, { mayBeWritten = false } = {}) {
    super(`the store is unavailable: ${detail}${mayBeWritten ? '; the write may or may not have been committed' : ''}`)
    this.mayBeWritten = mayBeWritten
  }
}

/**
 * Thrown if the bytes of a stored record do not match their checksum, are missing or cannot be read. The message names the key and
 * the revision, but never contains the value.
 */
export class DamagedRecordError extends Error {
  override readonly name = 'DamagedRecordError'
  readonly key: string
  readonly revision: Revision
  readonly reason: string
  constructor({ key, revision, reason }: { key: string; revision: Revision; reason: string }) {
    super(`the record of ${key} at revision ${revision} is damaged: ${reason}`)
    this.key = key
    this.revision = revision
    this.reason = reason
  }
}

/** Thrown if the storage wrote no part of the transaction. */
export class WriteRejectedError extends Error {
  override readonly name = 'WriteRejectedError'
  constructor(detail: string, cause?: unknown) {
    super(`nothing was written: ${detail}`, { cause })
  }
}
