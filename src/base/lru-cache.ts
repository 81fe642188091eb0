// An approximate LRU cache with two generations. When the recent generation is full, it replaces the old one, whose entries
// are evicted. get() copies an entry of the old generation to the recent one. Evictions need no search.
//   half size 2:  set a, b → [a b | ]   set c → [c | a b]   get a → [c a | a b]   set d → [d | c a]   b is evicted
export class LruCache<K, V> {
  readonly #halfMax: number
  readonly #weightOf: (value: V) => number
  #recent = new Map<K, V>()
  #recentWeight = 0
  #old = new Map<K, V>()

  /**
   * Holds entries with a total weight of at most `max`, plus that of entries heavier than half of it, which form a generation
   * of their own. Default weight: 1.
   */
  constructor(max: number, weightOf: (value: V) => number = () => 1) {
    this.#halfMax = Math.max(1, Math.floor(max / 2))
    this.#weightOf = weightOf
  }

  get(key: K): V | undefined {
    const recentValue = this.#recent.get(key)
    if (recentValue !== undefined) return recentValue
    const oldValue = this.#old.get(key)
    if (oldValue !== undefined) this.set(key, oldValue)
    return oldValue
  }

  set(key: K, value: V): void {
    const replacedValue = this.#recent.get(key)
    const addedWeight = this.#weightOf(value) - (replacedValue === undefined ? 0 : this.#weightOf(replacedValue))
    if (this.#recentWeight + addedWeight > this.#halfMax && this.#recent.size > 0) {
      this.evictOld()
      this.#recentWeight = this.#weightOf(value)
    } else this.#recentWeight += addedWeight
    this.#recent.set(key, value)
  }

  /** Evicts the old generation, which the recent one replaces. Called twice, it evicts all entries not used in between. */
  evictOld(): void {
    this.#old = this.#recent
    this.#recent = new Map()
    this.#recentWeight = 0
  }
}
