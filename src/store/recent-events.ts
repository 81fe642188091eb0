// Remembers the newest events, so that watchers which reconnect share one object (and what is cached on it).
// Bounded by the bytes of their values; the oldest go first and are built anew if somebody asks again.
import type { StoreEvent } from './store.ts'
import type { Version } from './version.ts'

const RECENT_BYTES_MAX = 4 * 1024 * 1024
const EVENT_BYTES = 200 // what an event takes besides its values, roughly

export class RecentEvents {
  readonly #events = new Map<Version, StoreEvent>()
  #bytes = 0

  /** The event of this version, made by `build` unless it is remembered. */
  of(version: Version, build: () => StoreEvent): StoreEvent {
    const known = this.#events.get(version)
    if (known) return known
    const event = build()
    this.#events.set(version, event)
    this.#bytes += bytesOf(event)
    for (const [oldest, oldestEvent] of this.#events) {
      if (this.#bytes <= RECENT_BYTES_MAX) break
      this.#events.delete(oldest)
      this.#bytes -= bytesOf(oldestEvent)
    }
    return event
  }
}

function bytesOf(event: StoreEvent): number {
  return EVENT_BYTES + (event.entry?.value.length ?? 0) + (event.previous?.value.length ?? 0)
}
