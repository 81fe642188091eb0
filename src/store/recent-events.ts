// RecentEvents caches the last events, so that watchers, including those that reconnect, share one object per change.
// The cache has two generations of bounded size: a full young generation replaces the old one.
import type { Entry, StoreEvent } from './store.ts'
import { storedLength } from './value-transformer.ts'
import type { Version } from './version.ts'

const GENERATION_BYTES_MAX = 2 * 1024 * 1024
const EVENT_BYTES = 200 // approximate size of an event without its values

export class RecentEvents {
  #young = new Map<Version, StoreEvent>()
  #old = new Map<Version, StoreEvent>()
  #youngBytes = 0

  /** Returns the cached event of this version, or builds it. */
  of(version: Version, build: () => StoreEvent): StoreEvent {
    const cached = this.#young.get(version) ?? this.#old.get(version)
    if (cached) return cached
    const event = build()
    this.#young.set(version, event)
    this.#youngBytes += EVENT_BYTES + bytesOf(event.entry) + bytesOf(event.previous)
    if (this.#youngBytes > GENERATION_BYTES_MAX) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngBytes = 0
    }
    return event
  }
}

const bytesOf = (entry: Entry | undefined): number => (entry ? storedLength(entry) : 0)
