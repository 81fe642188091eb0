// RecentEvents caches the last events, so that watchers, including those that reconnect, share one object per change, and
// transactions find what was written last without reading it.
import type { Clock } from '../base/clock.ts'
import { ExpiringCache } from '../base/expiring-cache.ts'
import type { Entry, StoreEvent } from './store.ts'
import { storedLength } from './value-transformer.ts'
import type { Version } from './version.ts'

const BYTES_MAX = 2 * 1024 * 1024
const EVENT_BYTES = 200 // approximate size of an event without its values
/** An event that no watcher needs for one to two intervals is evicted. */
const EVICTION_INTERVAL_MS = 30_000

export class RecentEvents {
  readonly #events: ExpiringCache<Version, StoreEvent>

  constructor(clock: Pick<Clock, 'after'>) {
    this.#events = new ExpiringCache({
      clock,
      intervalMs: EVICTION_INTERVAL_MS,
      max: BYTES_MAX,
      weightOf: ({ entry, previous }) => EVENT_BYTES + bytesOf(entry) + bytesOf(previous),
    })
  }

  /** Returns the cached event of this version, or builds it. */
  eventOf(version: Version, build: () => StoreEvent): StoreEvent {
    const cachedEvent = this.#events.get(version)
    if (cachedEvent) return cachedEvent
    const event = build()
    this.#events.set(version, event)
    return event
  }

  /** Returns the entry that this version has written, if its event is cached. */
  entryOf(version: Version): Entry | undefined {
    const event = this.#events.get(version)
    return event?.type === 'put' ? event.entry : undefined
  }
}

const bytesOf = (entry: Entry | undefined): number => (entry ? storedLength(entry) : 0)
