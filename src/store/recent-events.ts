// RecentEvents caches the last events, so that watchers, including those that reconnect, share one object per change.
// The cache has two generations of bounded size: a full young generation replaces the old one.
import type { Entry, StoreEvent } from './store.ts'
import { storedLength } from './value-transformer.ts'
import type { Version } from './version.ts'

const GENERATION_BYTES_MAX = 2 * 1024 * 1024
const EVENT_BYTES = 200 // approximate size of an event without its values

export class RecentEvents {
  #youngEvents = new Map<Version, StoreEvent>()
  #oldEvents = new Map<Version, StoreEvent>()
  #youngBytes = 0

  /** Returns the cached event of this version, or builds it. */
  eventOf(version: Version, build: () => StoreEvent): StoreEvent {
    const cachedEvent = this.#youngEvents.get(version) ?? this.#oldEvents.get(version)
    if (cachedEvent) return cachedEvent
    const event = build()
    this.#youngEvents.set(version, event)
    this.#youngBytes += EVENT_BYTES + bytesOf(event.entry) + bytesOf(event.previous)
    if (this.#youngBytes > GENERATION_BYTES_MAX) {
      this.#oldEvents = this.#youngEvents
      this.#youngEvents = new Map()
      this.#youngBytes = 0
    }
    return event
  }
}

const bytesOf = (entry: Entry | undefined): number => (entry ? storedLength(entry) : 0)
