// The store over any Medium: group commit, reads, watches, compaction and expiry.
//
// Group commit: a single loop takes pending transactions, runs them in order on a Batch (batch.ts), writes the batch to
// the medium atomically, and then makes it visible to readers (key-index.ts), to watchers (watch-hub.ts) and to the callers
// of transact(). Transactions that arrive during the write form the next batch. A transaction that has no others to share a
// batch with is written in this thread, while the disk is fast (commit-pace.ts).
//
// Recovery: opening a store scans the record headers, rebuilds the version chains, and continues after the newest revision.
// A batch is written completely or not at all, so no repair is needed after a crash.
//
// Damage: every value is compared with its checksum when it is read (checked-values.ts), and in the background (scrub.ts).
// Reading the value of a damaged record throws; the store stays open.
import type { Clock } from '../base/clock.ts'
import { Batch, type Outcome } from './batch.ts'
import { CheckedValues } from './checked-values.ts'
import { CommitPace } from './commit-pace.ts'
import { DamagedEntry } from './damaged-entry.ts'
import { deleteExpired, ExpiryQueue } from './expiry.ts'
import { History } from './history.ts'
import { KeyIndex } from './key-index.ts'
import { AppendRejectedError, type Floors, type Medium, MediumLostError, type VerifiedSlice } from './medium.ts'
import { RecentEvents } from './recent-events.ts'
import { Scrub } from './scrub.ts'
import { SharedEntries } from './shared-entries.ts'
import {
  type CommitListener,
  CompactedError,
  DamagedRecordError,
  type Decide,
  type Entry,
  FutureRevisionError,
  type HistoryOptions,
  type ListOptions,
  type ListResult,
  type Revision,
  type Store,
  StoreBusyError,
  StoreClosedError,
  type StoreEvent,
  type StoreStats,
  type TransactionResult,
  type Watch,
  type WatchOptions,
  WriteRejectedError,
} from './store.ts'
import { TransactionEntries } from './transaction-entries.ts'
import { decodedLength, entryOfStored, type ValueTransformer } from './value-transformer.ts'
import { type Version, versionAt, versionBefore } from './version.ts'
import { WatchHub } from './watch-hub.ts'

export const PENDING_MAX = 100_000 // further transactions are rejected with StoreBusyError
const BATCH_TRANSACTIONS_MAX = 1_000 // a larger batch would block the event loop
const BATCH_BYTES_MAX = 8 * 1024 * 1024 // a batch of this size takes no further transactions
const BLOCKING_RECORDS_MAX = 64 // a batch that writes and drops more records is written in another thread
const BLOCKING_BYTES_MAX = 64 * 1024 // so is a larger one
const LIST_ENTRIES_PER_TURN = 1_000 // a longer list yields to the event loop after this many entries
const LIST_BYTES_PER_TURN = 4 * 1024 * 1024 // a larger list yields to the event loop after this many bytes
const COMPACT_DROPS_PER_BATCH = 500 // or two per written record, if that is more, so that compaction keeps up with writes
const COMPACT_PAUSE_MS = 10 // between batches that only compact
const COMPACT_TIMER_MS_MAX = 3_600_000 // timers do not support arbitrarily long delays
const EXPIRE_KEYS_PER_RUN = 1_000 // further expired keys are deleted in the next run
const EXPIRE_CHECK_MS_MAX = 10_000 // check at least this often, because the wall clock may jump
const RETRY_MS = 1_000 // after a failed compaction or expiry
const MEDIUM_CHECK_MS = 500 // between checks whether the medium is still there; every write checks it too
const PROBE_AFTER_MS = 10_000 // after a failed write, probe the medium if there was no other write for this long

export interface RevisionedStoreOptions {
  readonly medium: Medium
  readonly clock: Clock
  readonly history?: HistoryOptions
  /** Default: values are stored as they are. */
  readonly transformer?: ValueTransformer
  /** The rate of the scrub. Default: 0, no scrub. */
  readonly scrubBytesPerSecond?: number
  /** Called once for each damaged record that a read or the scrub finds. */
  readonly onDamage?: (error: DamagedRecordError) => void
}

/** Opens a store on the medium. The store owns the medium and closes it. */
export async function openRevisionedStore(options: RevisionedStoreOptions): Promise<Store> {
  return new RevisionedStore(options)
}

interface PendingTransaction {
  readonly decide: Decide
  readonly resolve: (result: TransactionResult) => void
  readonly reject: (error: unknown) => void
}

interface DecidedTransaction {
  readonly transaction: PendingTransaction
  readonly outcome: Outcome
}

class RevisionedStore implements Store {
  readonly #medium: Medium
  readonly #values: CheckedValues
  readonly #scrub: Scrub | undefined
  readonly #clock: Clock
  readonly #transformer: ValueTransformer | undefined
  readonly #commitListeners = new Set<CommitListener>()
  readonly #index: KeyIndex
  readonly #history: History
  readonly #expiry: ExpiryQueue
  readonly #watches: WatchHub
  readonly #recentEvents: RecentEvents
  readonly #pace: CommitPace
  readonly #sharedEntries = new SharedEntries()
  readonly #transactionEntries: TransactionEntries
  #revision: Revision = 0

  #pendingTransactions: PendingTransaction[] = []
  /** Revisions that are compacted in memory, but not yet dropped from the medium. */
  #pendingDrops: Revision[] = []
  #isWriting = false
  #writeRun: Promise<void> = Promise.resolve()
  /** The time at which the medium rejected the last batch. Undefined if the last batch was written. */
  #rejectedAtMs: number | undefined
  /** Whether to write the next batch even if it is empty, to check whether the medium is writable again. */
  #isProbeDue = false
  /** The batch that is being made visible, whose values are in memory. */
  #publishedBatch: Batch | undefined
  /** Lists in progress. Compaction keeps the revisions that they read. */
  readonly #lists = new Set<{ readonly revision: Revision; readonly done: Promise<unknown> }>()

  #cancelCompaction = () => {}
  #cancelExpiry = () => {}
  #cancelCheck = () => {}
  #isExpiring = false
  /** The error with which all calls fail after the store is closed or has failed. */
  #closedError: StoreClosedError | undefined
  #closeRun: Promise<void> | undefined
  /** The error if the medium was lost. */
  #mediumLoss: MediumLostError | undefined

  constructor(options: RevisionedStoreOptions) {
    const { medium, clock, history = {}, transformer, scrubBytesPerSecond = 0, onDamage = () => {} } = options
    this.#medium = medium
    this.#values = new CheckedValues(medium, onDamage)
    this.#clock = clock
    this.#recentEvents = new RecentEvents(clock)
    this.#pace = new CommitPace(clock)
    this.#transactionEntries = new TransactionEntries(clock)
    this.#transformer = transformer
    const { versions, index, floors } = scanMedium(medium)
    this.#index = index
    this.#expiry = new ExpiryQueue({ isNewest: (version) => this.#index.get(version.key) === version })
    this.#history = new History(history, floors)
    // The newest revision may be that of a compacted tombstone, which is stored only as a floor.
    this.#revision = Math.max(floors.ordinary, floors.brief, versions.at(-1)?.revision ?? 0)
    const nowMs = clock.monotonicMs()
    for (const version of versions) {
      this.#history.restore(version, nowMs)
      if (version.expiresAtMs !== undefined) this.#expiry.add(version)
    }

    this.#watches = new WatchHub({
      clock,
      revision: () => this.#revision,
      logsFor: (prefix) => this.#history.logsFor(prefix),
      eventOf: (version) => this.#eventOf(version),
    })
    this.#scheduleCompaction()
    this.#scheduleExpiry()
    this.#scheduleCheck()
    const { verify } = medium
    if (verify && scrubBytesPerSecond > 0) {
      this.#scrub = new Scrub({
        clock,
        bytesPerSecond: scrubBytesPerSecond,
        verify: (slice) => verify.call(medium, slice),
        report: (damage) => void this.#values.report(damage),
        reportRange: (range) => this.#reportRange(range),
        revision: () => this.#revision,
      })
    }
  }

  onCommit(listener: CommitListener): void {
    this.#commitListeners.add(listener)
  }

  get revision(): Revision {
    return this.#revision
  }

  async get(key: string): Promise<Entry | undefined> {
    this.#checkOpen()
    const version = this.#index.get(key)
    return version && !version.isDeleted ? this.#read(version) : undefined
  }

  async list({ prefix, afterKey, limit, atRevision }: ListOptions): Promise<ListResult> {
    this.#checkOpen()
    const revision = atRevision ?? this.#revision
    this.#checkKept(prefix, revision)

    const versions: Version[] = []
    let lastKey = afterKey
    let hasMore = false
    this.#index.scan({ prefix, afterKey }, (newest) => {
      const version = versionAt(newest, revision)
      if (!version) return true
      if (versions.length === limit) {
        hasMore = true
        return false
      }
      versions.push(version)
      lastKey = version.key
      return true
    })
    const remainingCount = hasMore ? this.#index.count({ prefix, afterKey: lastKey }, revision) : 0
    return { entries: await this.#readAll(prefix, versions, revision), revision, hasMore, remainingCount }
  }

  transact(decide: Decide): Promise<TransactionResult> {
    if (this.#closedError) return Promise.reject(this.#closedError)
    if (this.#pendingTransactions.length >= PENDING_MAX)
      return Promise.reject(new StoreBusyError(this.#pendingTransactions.length))
    return new Promise((resolve, reject) => {
      this.#pendingTransactions.push({ decide, resolve, reject })
      this.#startWriting()
    })
  }

  watch(options: WatchOptions): Watch {
    this.#checkOpen()
    this.#checkKept(options.prefix, options.afterRevision)
    return this.#watches.watch(options)
  }

  stats(): StoreStats {
    return {
      keys: this.#index.liveCount,
      revision: this.#revision,
      compactedRevision: this.#history.floors.ordinary,
      historyEntries: this.#history.entries,
      historyBytes: this.#history.bytes,
      bytesOnDisk: this.#medium.bytesOnDisk(),
      watchers: this.#watches.count,
      damagedRecords: this.#values.damage.size,
      scrub: this.#scrub?.stats(),
    }
  }

  damagedRecords(): readonly DamagedRecordError[] {
    return [...this.#values.damage.values()]
  }

  async problem(): Promise<string | undefined> {
    if (this.#mediumLoss) return this.#mediumLoss.publicMessage
    if (this.#closedError) return 'the store is closed'
    if (this.#rejectedAtMs === undefined) return undefined
    // Probe with an empty write: a server that is not ready receives no requests, so without a probe the store would not detect
    // that the disk has recovered.
    if (this.#clock.monotonicMs() - this.#rejectedAtMs >= PROBE_AFTER_MS) {
      this.#isProbeDue = true
      this.#startWriting()
    }
    return 'the last write failed'
  }

  close(): Promise<void> {
    this.#closeRun ??= this.#close(new StoreClosedError())
    return this.#closeRun
  }

  // Writing

  #startWriting(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#writeRun = this.#writeBatches()
  }

  async #writeBatches(): Promise<void> {
    await Promise.resolve() // calls of transact() in the same tick share the first batch
    do {
      await this.#writeBatch()
    } while (this.#pendingTransactions.length > 0 || this.#isProbeDue)
    this.#isWriting = false
  }

  async #writeBatch(): Promise<void> {
    const isAlone = await this.#isTransactionAlone()
    const batch = new Batch({
      index: this.#index,
      revision: this.#revision,
      readEntry: (version) => this.#readForTransaction(version),
    })
    const decidedTransactions = this.#decide(batch)
    this.#compact(Math.max(COMPACT_DROPS_PER_BATCH, 2 * batch.changes.length))

    try {
      await this.#write(batch, isAlone)
      this.#apply(batch)
    } catch (error) {
      if (error instanceof AppendRejectedError) this.#rejectBatch(decidedTransactions, error)
      else this.#fail(decidedTransactions, error)
      return
    }
    for (const { transaction, outcome } of decidedTransactions) settle(transaction, outcome)
    this.#scheduleCompaction()
    this.#scheduleExpiry()
  }

  /**
   * Returns whether a single transaction is pending, also after all requests are read that have arrived, and may be written in this
   * thread.
   */
  async #isTransactionAlone(): Promise<boolean> {
    if (!this.#medium.whenPolled || this.#pendingTransactions.length !== 1 || !this.#pace.mayBlock) return false
    await this.#medium.whenPolled()
    return this.#pendingTransactions.length === 1
  }

  #decide(batch: Batch): DecidedTransaction[] {
    const decidedTransactions: DecidedTransaction[] = []
    for (const transaction of this.#pendingTransactions) {
      if (decidedTransactions.length >= BATCH_TRANSACTIONS_MAX || batch.bytes >= BATCH_BYTES_MAX) break
      decidedTransactions.push({ transaction, outcome: batch.run(transaction.decide) })
    }
    this.#pendingTransactions = this.#pendingTransactions.slice(decidedTransactions.length)
    return decidedTransactions
  }

  async #write(batch: Batch, isAlone: boolean): Promise<void> {
    const isProbe = this.#isProbeDue
    this.#isProbeDue = false
    const drop = this.#pendingDrops
    const transformer = this.#transformer
    const records = batch.records(transformer && ((key, value) => transformer.encode(key, value)))
    if (records.length === 0 && drop.length === 0 && !isProbe) return
    const floors = drop.length > 0 || isProbe ? this.#history.floors : undefined
    const isBlocking =
      isAlone && records.length + drop.length <= BLOCKING_RECORDS_MAX && batch.bytes <= BLOCKING_BYTES_MAX
    const startedMs = this.#clock.monotonicMs()
    try {
      await this.#medium.write({ append: records, drop, floors }, { isBlocking })
    } finally {
      if (isBlocking) this.#pace.record(this.#clock.monotonicMs() - startedMs)
    }
    this.#values.forget(drop)
    this.#rejectedAtMs = undefined
    this.#pendingDrops = []
    const seconds = (this.#clock.monotonicMs() - startedMs) / 1000
    for (const listener of this.#commitListeners) listener(seconds, records.length)
  }

  #apply(batch: Batch): void {
    const { changes } = batch
    if (changes.length === 0) return
    const nowMs = this.#clock.monotonicMs()
    for (const version of changes) {
      this.#index.set(version)
      this.#history.append(version, nowMs)
      if (version.expiresAtMs !== undefined) this.#expiry.add(version)
    }
    this.#revision = (changes.at(-1) as Version).revision
    this.#publishedBatch = batch
    this.#watches.publish(changes)
    this.#publishedBatch = undefined
  }

  /** Rejects the writers of a batch that was not written, and reruns its other transactions, which may have read from it. */
  #rejectBatch(decidedTransactions: readonly DecidedTransaction[], error: AppendRejectedError): void {
    this.#rejectedAtMs = this.#clock.monotonicMs()
    const transactionsToRerun: PendingTransaction[] = []
    for (const { transaction, outcome } of decidedTransactions) {
      if (outcome.is === 'written') transaction.reject(new WriteRejectedError(error.message, error))
      else transactionsToRerun.push(transaction)
    }
    this.#pendingTransactions.unshift(...transactionsToRerun)
    this.#scheduleCompaction({ notBeforeMs: this.#clock.monotonicMs() + RETRY_MS })
  }

  /** Closes the store, because it is unknown whether the batch was written, or because the medium was lost. */
  #fail(decidedTransactions: readonly DecidedTransaction[], error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof MediumLostError) this.#mediumLoss = error
    const reason = new StoreClosedError(
      this.#mediumLoss
        ? `the store is closed: ${message}; writes without a response may be lost`
        : `the store is closed: a write failed and may or may not have been persisted (${message}); reopen it`,
    )
    reason.cause = error
    this.#closedError = reason
    for (const { transaction } of decidedTransactions) transaction.reject(reason)
    for (const transaction of this.#pendingTransactions.splice(0)) transaction.reject(reason)
    this.#closeRun ??= this.#close(reason)
    this.#closeRun.catch(() => {}) // reported to the caller of close()
  }

  // Reading

  #read(version: Version): Entry {
    const { key, revision: modRevision, createRevision } = version
    const storedBytes = this.#values.read(version)
    if (storedBytes instanceof DamagedRecordError) return new DamagedEntry(storedBytes, createRevision)
    return entryOfStored({ key, storedBytes, modRevision, createRevision }, this.#transformer)
  }

  /**
   * Transactions read some entries again and again, such as the namespace of every created object. Most others that they read were
   * written shortly before, and are in memory for watchers.
   */
  #readForTransaction(version: Version): Entry {
    if (this.#values.damage.has(version.revision)) return this.#read(version)
    // An entry in memory for watchers does not know its stored bytes, which a new encryption key makes stale.
    const recentEntry = this.#transformer ? undefined : this.#recentEvents.entryOf(version)
    return recentEntry ?? this.#transactionEntries.entryOf(version, () => this.#read(version))
  }

  /** Reports all versions with a revision in the range. */
  #reportRange({ first, last, reason }: VerifiedSlice['damagedRanges'][number]): void {
    this.#index.scan({ prefix: '' }, (newest) => {
      for (let version: Version | undefined = newest; version; version = version.previous) {
        const { key, revision } = version
        if (first <= revision && revision <= last) this.#values.report({ key, revision, reason })
      }
      return true
    })
  }

  /** Reads the values in slices, one per turn of the event loop. Compaction keeps this revision until all values are read. */
  async #readAll(prefix: string, versions: readonly Version[], revision: Revision): Promise<Entry[]> {
    const entries: Entry[] = []
    const sharedEntry = this.#sharedEntries.reader(prefix)
    if (!this.#readSlice(versions, entries, sharedEntry)) {
      const done = (async () => {
        do await this.#clock.nextTurn()
        while (!this.#readSlice(versions, entries, sharedEntry))
      })()
      const list = { revision, done }
      this.#lists.add(list)
      await done.finally(() => this.#lists.delete(list))
    }
    this.#sharedEntries.share(prefix, entries)
    return entries
  }

  /** Reads the next values, and returns whether they were the last ones. */
  #readSlice(
    versions: readonly Version[],
    entries: Entry[],
    sharedEntry: (version: Version) => Entry | undefined,
  ): boolean {
    const end = Math.min(versions.length, entries.length + LIST_ENTRIES_PER_TURN)
    for (let bytes = 0; entries.length < end && bytes < LIST_BYTES_PER_TURN; ) {
      const version = versions[entries.length]!
      const entry = sharedEntry(version) ?? this.#read(version)
      bytes += decodedLength(entry)
      entries.push(entry)
    }
    return entries.length === versions.length
  }

  #eventOf(version: Version): StoreEvent {
    return this.#recentEvents.eventOf(version, () => {
      const { key, revision } = version
      const previousVersion = versionBefore(version)
      const previous = previousVersion && this.#entryOf(previousVersion)
      if (version.isDeleted) return { type: 'delete', key, revision, previous }
      return { type: 'put', key, revision, entry: this.#entryOf(version), previous }
    })
  }

  #entryOf(version: Version): Entry {
    return this.#publishedBatch?.entryOf(version) ?? this.#recentEvents.entryOf(version) ?? this.#read(version)
  }

  #checkKept(prefix: string, revision: Revision): void {
    if (revision > this.#revision) throw new FutureRevisionError(revision, this.#revision)
    const floor = this.#history.floorOf(prefix)
    if (revision < floor) throw new CompactedError(floor)
  }

  #checkOpen(): void {
    if (this.#closedError) throw this.#closedError
  }

  // Compaction and expiry

  /**
   * Drops versions from memory first and from the medium with the next write, so that no reader requests a deleted record.
   * After a crash before that write, the medium still has the records and the old floors.
   */
  #compact(dropsMax: number): void {
    if (this.#pendingDrops.length >= dropsMax) return
    const revisionMax = Math.min(...[...this.#lists].map((list) => list.revision), this.#revision)
    const droppedVersions = this.#history.compact({ nowMs: this.#clock.monotonicMs(), revisionMax, dropsMax })
    for (const version of droppedVersions) {
      if (version.isDeleted && this.#index.get(version.key) === version) this.#index.delete(version.key)
      this.#pendingDrops.push(version.revision)
    }
  }

  #scheduleCompaction({ notBeforeMs = Number.NEGATIVE_INFINITY } = {}): void {
    this.#cancelCompaction()
    if (this.#closedError) return
    const nowMs = this.#clock.monotonicMs()
    const dueAtMs = this.#pendingDrops.length > 0 ? nowMs : this.#history.dueAtMs()
    if (dueAtMs === undefined) return
    const delayMs = Math.min(Math.max(COMPACT_PAUSE_MS, dueAtMs - nowMs, notBeforeMs - nowMs), COMPACT_TIMER_MS_MAX)
    this.#cancelCompaction = this.#clock.after(delayMs, () => this.#startWriting())
  }

  #scheduleExpiry({ notBeforeMs = 0 } = {}): void {
    this.#cancelExpiry()
    if (this.#closedError || this.#isExpiring) return
    const nextMs = this.#expiry.nextMs()
    if (nextMs === undefined) return
    const nowMs = this.#clock.nowMs()
    const delayMs = Math.max(0, Math.min(Math.max(nextMs, notBeforeMs) - nowMs, EXPIRE_CHECK_MS_MAX))
    this.#cancelExpiry = this.#clock.after(delayMs, () => void this.#expire())
  }

  async #expire(): Promise<void> {
    const expiredVersions = this.#expiry.takeDue({ nowMs: this.#clock.nowMs(), max: EXPIRE_KEYS_PER_RUN })
    let notBeforeMs = 0
    if (expiredVersions.length > 0) {
      this.#isExpiring = true
      try {
        await deleteExpired({ transact: (decide) => this.transact(decide) }, expiredVersions)
      } catch {
        // The write failed or the store is closed, so the keys are still expired.
        for (const version of expiredVersions) this.#expiry.add(version)
        notBeforeMs = this.#clock.nowMs() + RETRY_MS
      }
      this.#isExpiring = false
    }
    this.#scheduleExpiry({ notBeforeMs })
  }

  #scheduleCheck(): void {
    if (!this.#medium.check || this.#closedError) return
    this.#cancelCheck = this.#clock.after(MEDIUM_CHECK_MS, () => {
      try {
        this.#medium.check?.()
        this.#scheduleCheck()
      } catch (error) {
        this.#fail([], error)
      }
    })
  }

  // Closing

  async #close(reason: StoreClosedError): Promise<void> {
    this.#closedError ??= reason
    this.#cancelCompaction()
    this.#cancelExpiry()
    this.#cancelCheck()
    this.#scrub?.stop()
    await this.#writeRun
    await Promise.allSettled([...this.#lists].map((list) => list.done))
    this.#watches.end(this.#closedError)
    await this.#medium.close()
  }
}

function settle(transaction: PendingTransaction, outcome: Outcome): void {
  if (outcome.is === 'threw') transaction.reject(outcome.error)
  else transaction.resolve({ revision: outcome.revision, revisions: outcome.revisions })
}

/**
 * Reads the headers of all records. This is a separate function because closures in the constructor live as long as the
 * store and would keep the map of all keys in memory.
 */
function scanMedium(medium: Medium): { versions: Version[]; index: KeyIndex; floors: Floors } {
  const versions: Version[] = []
  const newest = new Map<string, Version>()
  const floors = medium.scan(({ key, revision, createRevision, expiresAtMs, isDeleted, checksum, valueBytes }) => {
    const previous = newest.get(key)
    const version = { key, revision, createRevision, expiresAtMs, isDeleted, checksum, valueBytes, previous }
    newest.set(key, version)
    versions.push(version)
  })
  return { versions, index: KeyIndex.fromVersions(newest), floors }
}
