// Remembers the newest events, so that watchers which reconnect share one object (and what is cached on it).
// Bounded by the bytes of their values: a full generation becomes the old one, and the old one is forgotten.
// What is forgotten is built anew when somebody asks for it.
import type { StoreEvent } from './store.ts'
import type { Version } from './version.ts'

const GENERATION_BYTES_MAX = 2 * 1024 * 1024
const EVENT_BYTES = 200 // what an event takes besides its values, roughly

export class RecentEvents {
  #young = new Map<Version, StoreEvent>()
  #old = new Map<Version, StoreEvent>()
  #youngBytes = 0

  /** The event of this version, made by `build` unless it is remembered. */
  of(version: Version, build: () => StoreEvent): StoreEvent {
    const known = this.#young.get(version) ?? this.#old.get(version)
    if (known) return known
    const event = build()
    this.#young.set(version, event)
    this.#youngBytes += EVENT_BYTES + (event.entry?.value.length ?? 0) + (event.previous?.value.length ?? 0)
    if (this.#youngBytes > GENERATION_BYTES_MAX) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngBytes = 0
    }
    return event
  }
}
