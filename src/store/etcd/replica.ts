// Replica: an in-memory copy of the store in etcd with all values and the kept history. It serves reads and watches;
// feed.ts delivers the changes in order and without gaps. Unlike those of the embedded store, its versions contain their
// values.
import type { Clock } from '../../base/clock.ts'
import { DamagedEntry } from '../damaged-entry.ts'
import { ExpiryQueue } from '../expiry.ts'
import { History } from '../history.ts'
import { KeyIndex } from '../key-index.ts'
import { RecentEvents } from '../recent-events.ts'
import {
  CompactedError,
  DamagedRecordError,
  type Entry,
  FutureRevisionError,
  type HistoryOptions,
  type ListOptions,
  type ListResult,
  type Revision,
  type StoreEvent,
  type Watch,
  type WatchOptions,
} from '../store.ts'
import { entryOfStored, type ValueTransformer } from '../value-transformer.ts'
import { type Version, versionAt, versionBefore } from '../version.ts'
import { WatchHub } from '../watch-hub.ts'

const COMPACT_DROPS_PER_TURN = 2_000
const COMPACT_PAUSE_MS = 10

/** The new state of a key, or its deletion. */
export interface Change {
  readonly key: string
  readonly revision: Revision
  readonly createRevision: Revision
  /** The stored bytes. Absent for a delete. */
  readonly value?: Uint8Array
  readonly expiresAtMs?: number
  /** Why the stored bytes cannot be used. */
  readonly damage?: string
}

interface VersionWithEntry extends Version {
  readonly entry: Entry | undefined
}

export interface ReplicaOptions {
  readonly clock: Clock
  readonly history: HistoryOptions
  readonly transformer: ValueTransformer | undefined
  /** Called for each damaged value. */
  readonly onDamage?: ((error: DamagedRecordError) => void) | undefined
}

interface RevisionWaiter {
  readonly revision: Revision
  readonly resolve: () => void
}

export class Replica {
  readonly #clock: Clock
  readonly #historyOptions: HistoryOptions
  readonly #transformer: ValueTransformer | undefined
  readonly #onDamage: ReplicaOptions['onDamage']
  /** The keys whose newest value is damaged. */
  readonly #damage = new Map<string, DamagedRecordError>()
  readonly #watches: WatchHub
  #recentEvents: RecentEvents
  #index = new KeyIndex()
  #history: History
  #expiry: ExpiryQueue
  #revision: Revision = 0
  readonly #waiters = new Set<RevisionWaiter>()
  #cancelCompaction = () => {}
  #isClosed = false

  constructor({ clock, history, transformer, onDamage }: ReplicaOptions) {
    this.#clock = clock
    this.#recentEvents = new RecentEvents(clock)
    this.#historyOptions = history
    this.#transformer = transformer
    this.#onDamage = onDamage
    this.#history = this.#newHistory(0)
    this.#expiry = this.#newExpiry()
    this.#watches = new WatchHub({
      clock,
      revision: () => this.#revision,
      logsFor: (prefix) => this.#history.logsFor(prefix),
      eventOf: (version) => this.#recentEvents.eventOf(version, () => eventOf(version as VersionWithEntry)),
    })
  }

  /** The revision up to which all changes have been applied. */
  get revision(): Revision {
    return this.#revision
  }

  get keys(): number {
    return this.#index.liveCount
  }

  /** The damaged newest values. */
  get damage(): readonly DamagedRecordError[] {
    return [...this.#damage.values()]
  }

  get historyBytes(): number {
    return this.#history.bytes
  }

  get historyEntries(): number {
    return this.#history.entries
  }

  get watchers(): number {
    return this.#watches.count
  }

  /** The oldest revision at which ordinary keys can be listed and watched. */
  get compactedRevision(): Revision {
    return this.#history.floors.ordinary
  }

  /** The oldest revision that this replica can serve for any key; etcd may be compacted to it. */
  get oldestRevision(): Revision {
    const { ordinary, brief } = this.#history.floors
    return this.#historyOptions.brief ? Math.min(ordinary, brief) : ordinary
  }

  get(key: string): Entry | undefined {
    return (this.#index.get(key) as VersionWithEntry | undefined)?.entry
  }

  list({ prefix, afterKey, limit, atRevision = this.#revision }: ListOptions): ListResult {
    this.#checkKept(prefix, atRevision)
    const entries: Entry[] = []
    let lastKey = afterKey
    let hasMore = false
    this.#index.scan({ prefix, afterKey }, (newest) => {
      const version = versionAt(newest, atRevision) as VersionWithEntry | undefined
      if (!version?.entry) return true
      if (entries.length === limit) {
        hasMore = true
        return false
      }
      entries.push(version.entry)
      lastKey = version.key
      return true
    })
    const remainingCount = hasMore ? this.#index.count({ prefix, afterKey: lastKey }, atRevision) : 0
    return { entries, revision: atRevision, hasMore, remainingCount }
  }

  watch(options: WatchOptions): Watch {
    this.#checkKept(options.prefix, options.afterRevision)
    return this.#watches.watch(options)
  }

  /** Replaces the contents with the state at a revision. Ends all watchers, because earlier changes may be missing. */
  load(state: readonly Change[], revision: Revision): void {
    this.#watches.end(new CompactedError(revision))
    this.#damage.clear()
    const versions = new Map(state.map((change) => [change.key, this.#versionOf(change, undefined)]))
    this.#index = KeyIndex.fromVersions(versions)
    this.#history = this.#newHistory(revision)
    this.#recentEvents = new RecentEvents(this.#clock)
    this.#expiry = this.#newExpiry()
    for (const version of versions.values()) if (version.expiresAtMs !== undefined) this.#expiry.add(version)
    this.#advance(revision)
  }

  /** Applies the changes of complete transactions. `revision` is at least that of the last change. */
  apply(changes: readonly Change[], revision: Revision): void {
    const nowMs = this.#clock.monotonicMs()
    const versions: VersionWithEntry[] = []
    for (const change of changes) {
      const version = this.#versionOf(change, this.#index.get(change.key))
      this.#index.set(version)
      this.#history.append(version, nowMs)
      if (version.expiresAtMs !== undefined) this.#expiry.add(version)
      versions.push(version)
    }
    this.#revision = revision
    if (versions.length > 0) this.#watches.publish(versions)
    this.#advance(revision)
    this.#scheduleCompaction()
  }

  /** Calls `resolve` after the revision has been applied. Returns a function that cancels the wait. */
  onRevision(revision: Revision, resolve: () => void): () => void {
    const waiter = { revision, resolve }
    this.#waiters.add(waiter)
    return () => void this.#waiters.delete(waiter)
  }

  /** Returns the time at which the next key expires. */
  nextExpiryMs(): number | undefined {
    return this.#expiry.nextMs()
  }

  /** Removes up to `max` expired versions from the expiry queue; restoreExpired() adds them again. */
  takeExpired(options: { nowMs: number; max: number }): Version[] {
    return this.#expiry.takeDue(options)
  }

  restoreExpired(versions: readonly Version[]): void {
    for (const version of versions) this.#expiry.add(version)
  }

  close(reason: Error): void {
    this.#isClosed = true
    this.#cancelCompaction()
    this.#watches.end(reason)
  }

  #advance(revision: Revision): void {
    this.#revision = revision
    for (const waiter of this.#waiters) {
      if (waiter.revision > revision) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  #versionOf(change: Change, previous: Version | undefined): VersionWithEntry {
    const { key, revision, createRevision, value: storedBytes, expiresAtMs } = change
    const entry = change.damage
      ? this.#damagedEntry(change, change.damage)
      : storedBytes && entryOfStored({ key, storedBytes, modRevision: revision, createRevision }, this.#transformer)
    if (!change.damage) this.#damage.delete(key)
    return {
      key,
      revision,
      createRevision,
      expiresAtMs,
      isDeleted: storedBytes === undefined,
      checksum: 0,
      valueBytes: storedBytes?.length ?? 0,
      previous,
      entry,
    }
  }

  #damagedEntry({ key, revision, createRevision }: Change, reason: string): Entry {
    const error = new DamagedRecordError({ key, revision, reason })
    this.#damage.set(key, error)
    this.#onDamage?.(error)
    return new DamagedEntry(error, createRevision)
  }

  #newHistory(floor: Revision): History {
    const briefPrefixes = this.#historyOptions.brief?.prefixes ?? []
    return new History(this.#historyOptions, { ordinary: floor, brief: floor, briefPrefixes })
  }

  #newExpiry(): ExpiryQueue {
    return new ExpiryQueue({ isNewest: (version) => this.#index.get(version.key) === version })
  }

  #checkKept(prefix: string, revision: Revision): void {
    if (revision > this.#revision) throw new FutureRevisionError(revision, this.#revision)
    const floor = this.#history.floorOf(prefix)
    if (revision < floor) throw new CompactedError(floor)
  }

  #compact(): void {
    const limits = { nowMs: this.#clock.monotonicMs(), revisionMax: this.#revision, dropsMax: COMPACT_DROPS_PER_TURN }
    for (const version of this.#history.compact(limits)) {
      if (version.isDeleted && this.#index.get(version.key) === version) this.#index.delete(version.key)
    }
    this.#scheduleCompaction()
  }

  #scheduleCompaction(): void {
    this.#cancelCompaction()
    const dueAtMs = this.#history.dueAtMs()
    if (dueAtMs === undefined || this.#isClosed) return
    const delayMs = Math.max(COMPACT_PAUSE_MS, dueAtMs - this.#clock.monotonicMs())
    this.#cancelCompaction = this.#clock.after(delayMs, () => this.#compact())
  }
}

function eventOf(version: VersionWithEntry): StoreEvent {
  const { key, revision, entry } = version
  const previous = (versionBefore(version) as VersionWithEntry | undefined)?.entry
  if (!entry) return { type: 'delete', key, revision, previous }
  return { type: 'put', key, revision, entry, previous }
}
