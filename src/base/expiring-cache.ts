// An LruCache that evicts an entry that was not used for one to two intervals, which releases memory after a busy period.
// The timer runs only while there are entries.
import type { Clock } from './clock.ts'
import { LruCache } from './lru-cache.ts'

export interface ExpiringCacheOptions<V> {
  readonly clock: Pick<Clock, 'after'>
  readonly intervalMs: number
  /** The maximum weight of all entries. */
  readonly max: number
  /** Default: 1. */
  readonly weightOf?: (value: V) => number
  /** Called after each interval at which unused entries are evicted. The last call is after the last entry was evicted. */
  readonly onEviction?: () => void
}

export class ExpiringCache<K, V> extends LruCache<K, V> {
  readonly #clock: Pick<Clock, 'after'>
  readonly #intervalMs: number
  readonly #onEviction: () => void
  #isScheduled = false

  constructor({ clock, intervalMs, max, weightOf, onEviction = () => {} }: ExpiringCacheOptions<V>) {
    super(max, weightOf)
    this.#clock = clock
    this.#intervalMs = intervalMs
    this.#onEviction = onEviction
  }

  override set(key: K, value: V): void {
    super.set(key, value)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#clock.after(this.#intervalMs, () => {
      this.#isScheduled = false
      this.evictOld()
      this.#onEviction()
      if (this.size > 0) this.#schedule()
    })
  }
}
