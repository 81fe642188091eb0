// WatchHub delivers changes to watchers. A watcher is either replaying the change log in slices, or live, receiving
// every batch once the batch is durable. A watcher becomes live synchronously with reading the last change of the log, so no
// change is missed or delivered twice.
import type { Clock } from '../base/clock.ts'
import type { ChangeLog } from './change-log.ts'
import { type PrefixGroup, PrefixGroups } from './prefix-groups.ts'
import {
  CompactedError,
  DamagedRecordError,
  type Revision,
  type StoreEvent,
  type Watch,
  type WatchOptions,
} from './store.ts'
import type { Version } from './version.ts'

// Limits of one turn of the event loop, for all replaying watchers together.
const REPLAY_EVENTS_PER_TURN = 500
const REPLAY_CHANGES_PER_TURN = 20_000

export interface WatchHubOptions {
  readonly clock: Pick<Clock, 'nextTurn'>
  /** The newest durable revision. */
  readonly revision: () => Revision
  /** The logs that hold the changes under a prefix. */
  readonly logsFor: (prefix: string) => readonly ChangeLog[]
  readonly eventOf: (version: Version) => StoreEvent
}

interface Watcher extends WatchOptions {
  state: 'replaying' | 'live' | 'publishing' | 'closed' // publishing: live, but the current batch is not delivered yet
  /** The revision up to which all changes have been delivered. Not updated while the watcher is live. */
  deliveredRevision: Revision
}

export class WatchHub {
  readonly #options: WatchHubOptions
  readonly #watchers = new Set<Watcher>()
  readonly #liveWatchers = new PrefixGroups<Watcher>()
  /** Round-robin queue of the replaying watchers. */
  readonly #replayingWatchers: Watcher[] = []
  #isReplayRunning = false

  constructor(options: WatchHubOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#watchers.size
  }

  /** Adds a watcher. The caller must have checked that `afterRevision` exists and is not compacted. */
  watch(options: WatchOptions): Watch {
    const watcher: Watcher = { ...options, state: 'replaying', deliveredRevision: options.afterRevision }
    this.#watchers.add(watcher)
    if (options.afterRevision === this.#options.revision()) this.#goLive(watcher)
    else this.#startReplay(watcher)

    return new OpenWatch(this, watcher)
  }

  revisionOf(watcher: Watcher): Revision {
    return watcher.state === 'live' ? this.#options.revision() : watcher.deliveredRevision
  }

  close(watcher: Watcher): void {
    if (watcher.state === 'closed') return
    if (watcher.state === 'live') watcher.deliveredRevision = this.#options.revision()
    watcher.state = 'closed'
    this.#watchers.delete(watcher)
    this.#liveWatchers.remove(watcher.prefix, watcher)
  }

  /** Delivers versions that have just become durable to the live watchers. */
  publish(versions: readonly Version[]): void {
    const eventsOfGroup = new Map<PrefixGroup<Watcher>, StoreEvent[]>()
    for (const version of versions) {
      const groups = this.#liveWatchers.findMatching(version.key)
      if (groups.length === 0) continue
      const event = this.#options.eventOf(version)
      for (const group of groups) {
        const events = eventsOfGroup.get(group)
        if (events) events.push(event)
        else eventsOfGroup.set(group, [event])
      }
    }

    // Collect all deliveries before the first callback, because callbacks may add and close watchers.
    const deliveries: { watcher: Watcher; events: StoreEvent[] }[] = []
    for (const [group, events] of eventsOfGroup) {
      for (const watcher of group.members) {
        watcher.state = 'publishing'
        watcher.deliveredRevision = (versions[0] as Version).revision - 1
        deliveries.push({ watcher, events })
      }
    }
    for (const { watcher, events } of deliveries) {
      if (watcher.state !== 'publishing') continue // closed by an earlier callback
      watcher.state = 'live'
      this.#deliver(watcher, events)
    }
  }

  /** Ends every watcher. */
  end(reason: Error): void {
    for (const watcher of [...this.#watchers]) this.#end(watcher, reason)
  }

  #startReplay(watcher: Watcher): void {
    this.#replayingWatchers.push(watcher)
    if (this.#isReplayRunning) return
    this.#isReplayRunning = true
    void this.#replay()
  }

  async #replay(): Promise<void> {
    while (this.#replayingWatchers.length > 0) {
      await this.#options.clock.nextTurn()
      const budget = { events: REPLAY_EVENTS_PER_TURN, changes: REPLAY_CHANGES_PER_TURN }
      while (budget.events > 0 && budget.changes > 0) {
        const watcher = this.#replayingWatchers.shift()
        if (!watcher) break
        this.#replaySlice(watcher, budget)
        if (watcher.state === 'replaying') this.#replayingWatchers.push(watcher)
      }
    }
    this.#isReplayRunning = false
  }

  /** Delivers the next changes to one watcher, within the budget. */
  #replaySlice(watcher: Watcher, budget: { events: number; changes: number }): void {
    if (watcher.state !== 'replaying') return // the watch was closed
    const logs = this.#options.logsFor(watcher.prefix)
    const floor = Math.max(...logs.map((log) => log.floor))
    if (watcher.deliveredRevision < floor) {
      this.#end(watcher, new CompactedError(floor))
      return
    }

    const events: StoreEvent[] = []
    let isBehind = false
    for (const version of changesAfter(watcher.deliveredRevision, logs)) {
      if (budget.events <= 0 || budget.changes <= 0) {
        isBehind = true
        break
      }
      watcher.deliveredRevision = version.revision
      budget.changes--
      if (!version.key.startsWith(watcher.prefix)) continue
      budget.events--
      events.push(this.#options.eventOf(version))
    }

    if (!isBehind) this.#goLive(watcher)
    if (events.length > 0) this.#deliver(watcher, events)
  }

  #goLive(watcher: Watcher): void {
    watcher.state = 'live'
    this.#liveWatchers.add(watcher.prefix, watcher)
  }

  #deliver(watcher: Watcher, events: readonly StoreEvent[]): void {
    try {
      watcher.onEvents(events)
    } catch (error) {
      // End the watcher of a faulty callback, so that other watchers and writers are not affected.
      this.#end(watcher, error instanceof DamagedRecordError ? error : callbackError(watcher, error))
    }
  }

  #end(watcher: Watcher, reason: Error): void {
    if (watcher.state === 'closed') return
    this.close(watcher)
    watcher.onEnd(reason)
  }
}

/** A class, because an object with a getter of its own takes several times the memory. */
class OpenWatch implements Watch {
  readonly #hub: WatchHub
  readonly #watcher: Watcher

  constructor(hub: WatchHub, watcher: Watcher) {
    this.#hub = hub
    this.#watcher = watcher
  }

  get revision(): Revision {
    return this.#hub.revisionOf(this.#watcher)
  }

  close(): void {
    this.#hub.close(this.#watcher)
  }
}

const callbackError = ({ prefix }: Watcher, cause: unknown): Error =>
  new Error(`the onEvents callback of the watch on "${prefix}" threw`, { cause })

/** Merges the changes of several logs in revision order. */
function* changesAfter(revision: Revision, logs: readonly ChangeLog[]): Generator<Version> {
  const cursors = logs.map((log) => ({ log, position: log.positionAfter(revision) }))
  for (;;) {
    let earliestChange: { version: Version; cursor: { position: number } } | undefined
    for (const cursor of cursors) {
      const version = cursor.log.versionAt(cursor.position)
      if (version && (!earliestChange || version.revision < earliestChange.version.revision))
        earliestChange = { version, cursor }
    }
    if (!earliestChange) return
    yield earliestChange.version
    earliestChange.cursor.position++
  }
}
