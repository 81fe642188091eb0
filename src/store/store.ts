// The contract of every store: ordered revisions, atomic transactions, and watches that replay.
// A store knows keys and bytes, nothing else. Backends: memory.ts, lmdb.ts, etcd/;
// contract.ts is the one test all of them pass.
//
// Revisions are whole numbers that rise with every write: by one in the embedded stores, with gaps between transactions
// on etcd, where writes are numbered within the revisions of etcd that they share. The writes of one transaction have
// consecutive revisions in their order, so a watcher can resume after any of them; they are done and shown together, and
// only who asks for a revision between them sees a part. What is readable is durable: neither reads nor watches ever
// show a write that a power cut could take back.

export type Revision = number

export interface Entry {
  readonly key: string
  /** Shared with other readers: never change these bytes. */
  readonly value: Uint8Array
  /** Revision of the write that this is. */
  readonly modRevision: Revision
  /** Revision of the write that created this key (since its last deletion). */
  readonly createRevision: Revision
  /** For a transaction that sees a passing write of its own group commit: that write. Absent everywhere else. */
  readonly passing?: Put
}

export type Write = Put | { readonly delete: string }

export const keyOfWrite = (write: Write): string => ('put' in write ? write.put : write.delete)

export interface Put {
  readonly put: string
  /** Belongs to the store from here on: it is shared, not copied, so it must not change any more. */
  readonly value: Uint8Array
  /** The key is deleted by the store once this moment (clock.nowMs) has passed; each put sets or clears it anew. */
  readonly expiresAtMs?: number
  /**
   * A running total, rewritten by many transactions: one that is superseded in the same group commit, before
   * anybody could see it, need not be kept. Its revision then shows no change. Default: every state is kept.
   * Its `value` may be a getter, which is asked only for what is kept or read, and must not throw; it should be small,
   * as it does not count for what a transaction or a group commit may hold.
   */
  readonly isPassing?: boolean
}

/** What a transaction sees: the newest state, including transactions before it in the same group commit. */
export interface TransactionView {
  get(key: string): Entry | undefined
  /**
   * Everything below a prefix, in key order. A look, not a condition: where several servers share the store, one of
   * these may change or appear before the transaction is done. What must still hold by then is asked for with `get`.
   */
  list(prefix: string): readonly Entry[]
}

/**
 * Decides, synchronously and without side effects, what to write; it may be run more than once.
 * Throwing refuses the transaction: nothing is written and the caller gets the error.
 * Deleting a key that does not exist is no write. No writes at all means no new revision.
 * Each key may be written once per transaction; a second write of it refuses the transaction.
 */
export type Decide = (view: TransactionView) => readonly Write[]

export interface ListOptions {
  readonly prefix: string
  /** Only keys greater than this one (for paging). */
  readonly after?: string
  readonly limit?: number
  /** Read as of this revision; throws CompactedError when it is no longer kept, FutureRevisionError when not yet there. */
  readonly atRevision?: Revision
}

export interface ListResult {
  /** In key order, which is the order of JavaScript strings (for ASCII keys: of their bytes). */
  readonly entries: readonly Entry[]
  /** The revision the list shows: every write up to it is in, none after it. */
  readonly revision: Revision
  /** Whether entries beyond `limit` exist; `remaining` is how many. */
  readonly more: boolean
  readonly remaining: number
}

/** One key's change. The same object is given to every watcher, so derived bytes can be cached on its identity. */
export interface StoreEvent {
  readonly type: 'put' | 'delete'
  readonly key: string
  readonly revision: Revision
  /** The new state; absent for a delete. */
  readonly entry?: Entry
  /** The state before; absent when the key was created. */
  readonly previous?: Entry
}

export interface WatchOptions {
  readonly prefix: string
  /** Changes after this revision are delivered, oldest first, without gap or repeat. */
  readonly afterRevision: Revision
  /**
   * Called with changes in revision order; those of a transaction that is done while this watches come in one call.
   * Never called re-entrantly, nor before watch() has returned, nor after close(). Must not throw.
   */
  readonly onEvents: (events: readonly StoreEvent[]) => void
  /** The store can no longer follow this watcher (compacted under it, or the store was closed or broke). Called at most once. */
  readonly onEnd: (reason: Error) => void
}

export interface Watch {
  /** Everything up to this revision has been delivered to onEvents (also when nothing matched the prefix). */
  readonly revision: Revision
  close(): void
}

export interface Transacted {
  /** That of the last write; without writes, the revision the transaction saw. */
  readonly revision: Revision
  /** For each write that was decided, in that order: its revision, or 0 for a delete that found nothing. */
  readonly revisions: readonly Revision[]
}

export interface Store {
  /** The newest durable revision. */
  readonly revision: Revision
  get(key: string): Promise<Entry | undefined>
  list(options: ListOptions): Promise<ListResult>
  /**
   * Resolves once the writes are durable and readable, with their revisions.
   * Rejects with what `decide` threw, with WriteRefusedError when the medium took none of it, with StoreBusyError
   * when too many transactions wait, with StoreUnavailableError when the medium cannot be reached, and with
   * StoreClosedError when the store was closed or broke. The writes may have been kept after StoreClosedError, and
   * after StoreUnavailableError if it says so; never otherwise.
   */
  transact(decide: Decide): Promise<Transacted>
  /**
   * Throws CompactedError if changes after `afterRevision` are no longer kept for that prefix, and
   * FutureRevisionError if `afterRevision` is not yet there.
   */
  watch(options: WatchOptions): Watch
  /** Numbers for /metrics. */
  stats(): StoreStats
  /** Why nothing can be written at the moment, if so, in words that give nothing away; for /readyz. Answers within seconds. */
  problem?(): Promise<string | undefined>
  /** Told of every commit that reached the disk. */
  onCommit?(listener: CommitListener): void
  /** Waits for what was accepted, then releases everything. Later calls fail with StoreClosedError. */
  close(): Promise<void>
}

/** How long the disk took, and how many writes shared it. */
export type CommitListener = (seconds: number, writes: number) => void

export interface StoreStats {
  readonly keys: number
  readonly revision: Revision
  /** The oldest revision that can still be listed or watched from (outside `brief` prefixes). */
  readonly compactedRevision: Revision
  /** Superseded states still kept for watches and old reads. */
  readonly historyEntries: number
  readonly bytesOnDisk: number
  readonly watchers: number
}

/** How much history a backend keeps. Ages are counted anew when a store is opened. The same options for every backend that keeps its own history. */
export interface HistoryOptions {
  /** Superseded states are kept at least this long (unless entriesMax is exceeded). Default 5 minutes. */
  readonly keepMs?: number
  /** At most this many superseded states; beyond it the oldest go first whatever their age. Default 100,000. */
  readonly entriesMax?: number
  /** Keys whose history is not worth that much (heartbeats, events): kept `keepMs` only, with an own limit. */
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
    super(`${waiting} transactions are already waiting to be written; try again later`)
  }
}

/** The medium cannot be reached at the moment; later calls may succeed. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'
  /** Whether the writes of this transaction may have been kept all the same: the answer was lost. */
  readonly mayBeWritten: boolean
  constructor(because: string, { mayBeWritten = false } = {}) {
    super(`the store is unavailable: ${because}${mayBeWritten ? '; the write may or may not have been kept' : ''}`)
    this.mayBeWritten = mayBeWritten
  }
}

/** The medium took none of the transaction: nothing of it is visible, now or after a restart. */
export class WriteRefusedError extends Error {
  override readonly name = 'WriteRefusedError'
  constructor(because: string, cause?: unknown) {
    super(`nothing was written: ${because}`, { cause })
  }
}
