// The store itself, over any medium: group commit, reads, watches, compaction and expiry.
// One loop writes. It takes all transactions that wait, decides them (batch.ts), writes them in one durable step,
// and only then makes them visible: to readers (key-index.ts), to watchers (watch-hub.ts), to their callers.
// What waits while a batch is being written becomes the next batch.
import type { Clock } from '../base/clock.ts'
import { Batch, type Outcome } from './batch.ts'
import { deleteExpired, ExpiryQueue } from './expiry.ts'
import { History } from './history.ts'
import { KeyIndex } from './key-index.ts'
import { AppendRefusedError, type Medium } from './medium.ts'
import { RecentEvents } from './recent-events.ts'
import {
  type CommitListener,
  CompactedError,
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
  type Transacted,
  type Watch,
  type WatchOptions,
  WriteRefusedError,
} from './store.ts'
import { type Version, versionAt, versionBefore } from './version.ts'
import { WatchHub } from './watch-hub.ts'

export const WAITING_MAX = 100_000 // more waiting transactions are refused with StoreBusyError
const BATCH_TRANSACTIONS_MAX = 1_000 // the rest waits for the next batch, so that other work is not held up
const BATCH_BYTES_MAX = 8 * 1024 * 1024 // likewise; a single larger transaction is a batch of its own
const LIST_ENTRIES_PER_TURN = 1_000 // a longer list lets other work in between
const COMPACT_DROPS_PER_BATCH = 500 // or two per record written, if that is more: compaction keeps pace with any load
const COMPACT_PAUSE_MS = 10 // between batches that do nothing but compact
const COMPACT_LOOK_MS_MAX = 3_600_000 // timers cannot wait for ever
const EXPIRE_KEYS_PER_TRANSACTION = 1_000
const EXPIRE_LOOK_MS_MAX = 10_000 // the clock may jump: look at least this often
const RETRY_MS = 1_000 // after the medium has refused a compaction or an expiry
const TRIAL_AFTER_MS = 10_000 // without a write since one was refused, somebody must find out

export interface RevisionedStoreOptions {
  readonly medium: Medium
  readonly clock: Clock
  readonly history?: HistoryOptions
}

/** Opens what the medium holds. The store owns the medium from here on, and closes it. */
export async function openRevisionedStore(options: RevisionedStoreOptions): Promise<Store> {
  return new RevisionedStore(options)
}

interface Waiting {
  readonly decide: Decide
  readonly resolve: (result: Transacted) => void
  readonly reject: (error: unknown) => void
}

interface Decided {
  readonly transaction: Waiting
  readonly outcome: Outcome
}

class RevisionedStore implements Store {
  readonly #medium: Medium
  readonly #clock: Clock
  readonly #commitListeners = new Set<CommitListener>()
  readonly #index: KeyIndex
  readonly #history: History
  readonly #expiry: ExpiryQueue
  readonly #watches: WatchHub
  readonly #recentEvents = new RecentEvents()
  #revision: Revision = 0

  #waiting: Waiting[] = []
  /** Dropped from memory, not yet from the medium. */
  #toDrop: Revision[] = []
  #isWriting = false
  #writing: Promise<void> = Promise.resolve()
  /** When the medium refused the last batch; undefined: it took it. */
  #refusedAtMs: number | undefined
  /** The next batch is written even if it is empty: it shows whether the medium takes anything again. */
  #isTrialDue = false
  /** The batch that is being made visible: its values need not be read back. */
  #publishing: Batch | undefined
  /** Lists under way; what they show is not compacted. */
  readonly #lists = new Set<{ readonly revision: Revision; readonly done: Promise<unknown> }>()

  #cancelCompaction = () => {}
  #cancelExpiry = () => {}
  #isExpiring = false
  /** Why no call is served any more. */
  #closedBecause: StoreClosedError | undefined
  #closing: Promise<void> | undefined

  constructor({ medium, clock, history = {} }: RevisionedStoreOptions) {
    this.#medium = medium
    this.#clock = clock
    const found: Version[] = []
    const newest = new Map<string, Version>()
    const floors = medium.scan(({ key, revision, createRevision, expiresAtMs, deleted }) => {
      const previous = newest.get(key)
      const version = { key, revision, createRevision, expiresAtMs, deleted, previous }
      newest.set(key, version)
      found.push(version)
    })
    this.#index = KeyIndex.of(newest)
    this.#expiry = new ExpiryQueue({ isNewest: (version) => this.#index.get(version.key) === version })
    this.#history = new History(history, floors)
    // A tombstone that was the newest record may have been compacted: then the floor is all that is left of it.
    this.#revision = Math.max(floors.ordinary, floors.brief, found.at(-1)?.revision ?? 0)
    const nowMs = clock.monotonicMs()
    for (const version of found) {
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
    return version && !version.deleted ? this.#read(version) : undefined
  }

  async list({ prefix, after, limit, atRevision }: ListOptions): Promise<ListResult> {
    this.#checkOpen()
    const revision = atRevision ?? this.#revision
    this.#checkKept(prefix, revision)

    const versions: Version[] = []
    let last = after
    let more = false
    this.#index.scan({ prefix, after }, (newest) => {
      const version = versionAt(newest, revision)
      if (!version) return true
      if (versions.length === limit) {
        more = true
        return false
      }
      versions.push(version)
      last = version.key
      return true
    })
    const remaining = more ? this.#index.count({ prefix, after: last }, revision) : 0
    return { entries: await this.#readAll(versions, revision), revision, more, remaining }
  }

  transact(decide: Decide): Promise<Transacted> {
    if (this.#closedBecause) return Promise.reject(this.#closedBecause)
    if (this.#waiting.length >= WAITING_MAX) return Promise.reject(new StoreBusyError(this.#waiting.length))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ decide, resolve, reject })
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
      keys: this.#index.live,
      revision: this.#revision,
      compactedRevision: this.#history.floors.ordinary,
      historyEntries: this.#history.entries,
      bytesOnDisk: this.#medium.bytesOnDisk(),
      watchers: this.#watches.count,
    }
  }

  async problem(): Promise<string | undefined> {
    if (this.#closedBecause) return 'it has ended'
    if (this.#refusedAtMs === undefined) return undefined
    // Who is not asked to write, because it cannot, would never learn that it can again.
    if (this.#clock.monotonicMs() - this.#refusedAtMs >= TRIAL_AFTER_MS) {
      this.#isTrialDue = true
      this.#startWriting()
    }
    return 'the last write was refused'
  }

  close(): Promise<void> {
    this.#closing ??= this.#close(new StoreClosedError())
    return this.#closing
  }

  // Writing

  #startWriting(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#writing = this.#writeBatches()
  }

  async #writeBatches(): Promise<void> {
    await Promise.resolve() // those who ask in the same breath share the first batch
    do {
      await this.#writeBatch()
    } while (this.#waiting.length > 0 || this.#isTrialDue)
    this.#isWriting = false
  }

  async #writeBatch(): Promise<void> {
    const batch = new Batch({
      index: this.#index,
      revision: this.#revision,
      readEntry: (version) => this.#read(version),
    })
    const decided = this.#decide(batch)
    this.#compact(Math.max(COMPACT_DROPS_PER_BATCH, 2 * batch.changes.length))

    try {
      await this.#write(batch)
      this.#apply(batch)
    } catch (error) {
      if (error instanceof AppendRefusedError) this.#refuse(decided, error)
      else this.#break(decided, error)
      return
    }
    for (const { transaction, outcome } of decided) settle(transaction, outcome)
    this.#scheduleCompaction()
    this.#scheduleExpiry()
  }

  #decide(batch: Batch): Decided[] {
    const decided: Decided[] = []
    for (const transaction of this.#waiting) {
      if (decided.length >= BATCH_TRANSACTIONS_MAX || batch.bytes >= BATCH_BYTES_MAX) break
      decided.push({ transaction, outcome: batch.run(transaction.decide) })
    }
    this.#waiting = this.#waiting.slice(decided.length)
    return decided
  }

  async #write(batch: Batch): Promise<void> {
    const isTrial = this.#isTrialDue
    this.#isTrialDue = false
    const drop = this.#toDrop
    const records = batch.records()
    if (records.length === 0 && drop.length === 0 && !isTrial) return
    const floors = drop.length > 0 || isTrial ? this.#history.floors : undefined
    const startedMs = this.#clock.monotonicMs()
    await this.#medium.write({ append: records, drop, floors })
    this.#refusedAtMs = undefined
    this.#toDrop = []
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
    this.#publishing = batch
    this.#watches.publish(changes)
    this.#publishing = undefined
  }

  /** The medium took nothing. Who wanted to write is told so; who only looked may have seen what never was: again. */
  #refuse(decided: readonly Decided[], error: AppendRefusedError): void {
    this.#refusedAtMs = this.#clock.monotonicMs()
    const again: Waiting[] = []
    for (const { transaction, outcome } of decided) {
      if (outcome.is === 'written') transaction.reject(new WriteRefusedError(error.message, error))
      else again.push(transaction)
    }
    this.#waiting.unshift(...again)
    this.#scheduleCompaction({ notBeforeMs: this.#clock.monotonicMs() + RETRY_MS })
  }

  /** Nobody knows what is on the medium now, so nothing can be promised about it any more. */
  #break(decided: readonly Decided[], error: unknown): void {
    const because = error instanceof Error ? error.message : String(error)
    const reason = new StoreClosedError(
      `the store has ended: a write failed and may or may not have been kept (${because}); open it again`,
    )
    reason.cause = error
    this.#closedBecause = reason
    for (const { transaction } of decided) transaction.reject(reason)
    for (const transaction of this.#waiting.splice(0)) transaction.reject(reason)
    this.#closing ??= this.#close(reason)
    this.#closing.catch(() => {}) // whoever calls close() hears of it
  }

  // Reading

  #read(version: Version): Entry {
    const { key, revision: modRevision, createRevision } = version
    return { key, value: this.#medium.read(modRevision), modRevision, createRevision }
  }

  /** Reads the values, some per turn. Compaction leaves what this revision shows alone until all are read. */
  async #readAll(versions: readonly Version[], revision: Revision): Promise<Entry[]> {
    if (versions.length <= LIST_ENTRIES_PER_TURN) return versions.map((version) => this.#read(version))
    const entries: Entry[] = []
    const list = {
      revision,
      done: (async () => {
        for (const [at, version] of versions.entries()) {
          if (at > 0 && at % LIST_ENTRIES_PER_TURN === 0) await this.#clock.nextTurn()
          entries.push(this.#read(version))
        }
      })(),
    }
    this.#lists.add(list)
    await list.done.finally(() => this.#lists.delete(list))
    return entries
  }

  #eventOf(version: Version): StoreEvent {
    return this.#recentEvents.of(version, () => {
      const { key, revision } = version
      const before = versionBefore(version)
      const previous = before && this.#entryOf(before)
      if (version.deleted) return { type: 'delete', key, revision, previous }
      return { type: 'put', key, revision, entry: this.#entryOf(version), previous }
    })
  }

  #entryOf(version: Version): Entry {
    return this.#publishing?.entryOf(version) ?? this.#read(version)
  }

  #checkKept(prefix: string, revision: Revision): void {
    if (revision > this.#revision) throw new FutureRevisionError(revision, this.#revision)
    const floor = this.#history.floorOf(prefix)
    if (revision < floor) throw new CompactedError(floor)
  }

  #checkOpen(): void {
    if (this.#closedBecause) throw this.#closedBecause
  }

  // Forgetting

  /**
   * Memory forgets first, the medium with the next write: a reader never looks for a record that is gone.
   * If that write is lost in a crash, the records are found again, and so are the floors that go with them.
   */
  #compact(dropsMax: number): void {
    if (this.#toDrop.length >= dropsMax) return
    const revisionMax = Math.min(...[...this.#lists].map((list) => list.revision), this.#revision)
    const dropped = this.#history.compact({ nowMs: this.#clock.monotonicMs(), revisionMax, dropsMax })
    for (const version of dropped) {
      if (version.deleted && this.#index.get(version.key) === version) this.#index.delete(version.key)
      this.#toDrop.push(version.revision)
    }
  }

  #scheduleCompaction({ notBeforeMs = Number.NEGATIVE_INFINITY } = {}): void {
    this.#cancelCompaction()
    if (this.#closedBecause) return
    const nowMs = this.#clock.monotonicMs()
    const dueAtMs = this.#toDrop.length > 0 ? nowMs : this.#history.dueAtMs()
    if (dueAtMs === undefined) return
    const delayMs = Math.min(Math.max(COMPACT_PAUSE_MS, dueAtMs - nowMs, notBeforeMs - nowMs), COMPACT_LOOK_MS_MAX)
    this.#cancelCompaction = this.#clock.after(delayMs, () => this.#startWriting())
  }

  #scheduleExpiry({ notBeforeMs = 0 } = {}): void {
    this.#cancelExpiry()
    if (this.#closedBecause || this.#isExpiring) return
    const nextMs = this.#expiry.nextMs()
    if (nextMs === undefined) return
    const nowMs = this.#clock.nowMs()
    const delayMs = Math.max(0, Math.min(Math.max(nextMs, notBeforeMs) - nowMs, EXPIRE_LOOK_MS_MAX))
    this.#cancelExpiry = this.#clock.after(delayMs, () => void this.#expire())
  }

  async #expire(): Promise<void> {
    const due = this.#expiry.takeDue({ nowMs: this.#clock.nowMs(), max: EXPIRE_KEYS_PER_TRANSACTION })
    let notBeforeMs = 0
    if (due.length > 0) {
      this.#isExpiring = true
      try {
        await deleteExpired({ transact: (decide) => this.transact(decide) }, due)
      } catch {
        // Refused for now, or the store has ended: the keys are still due.
        for (const version of due) this.#expiry.add(version)
        notBeforeMs = this.#clock.nowMs() + RETRY_MS
      }
      this.#isExpiring = false
    }
    this.#scheduleExpiry({ notBeforeMs })
  }

  // Ending

  async #close(reason: StoreClosedError): Promise<void> {
    this.#closedBecause ??= reason
    this.#cancelCompaction()
    this.#cancelExpiry()
    await this.#writing
    await Promise.allSettled([...this.#lists].map((list) => list.done))
    this.#watches.end(this.#closedBecause)
    await this.#medium.close()
  }
}

function settle(transaction: Waiting, outcome: Outcome): void {
  if (outcome.is === 'refused') transaction.reject(outcome.error)
  else transaction.resolve({ revision: outcome.revision, revisions: outcome.revisions })
}
