// An approximate LRU cache with two generations. When the recent generation is full, it replaces the old one, whose entries
// are evicted. get() copies an entry of the old generation to the recent one. Evictions need no search.
//   half size 2:  set a, b → [a b | ]   set c → [c | a b]   get a → [c a | a b]   set d → [d | c a]   b is evicted
export class LruCache<K, V> {
  readonly #halfMax: number
  readonly #weightOf: (value: V) => number
  #recentEntries = new Map<K, V>()
  #recentWeight = 0
  #oldEntries = new Map<K, V>()

  /**
   * Holds entries with a total weight of at most `max`, plus that of entries heavier than half of it, which form a generation
   * of their own. Default weight: 1.
   */
  constructor(max: number, weightOf: (value: V) => number = () => 1) {
    this.#halfMax = Math.max(1, Math.floor(max / 2))
    this.#weightOf = weightOf
  }

  get(key: K): V | undefined {
    const recentValue = this.#recentEntries.get(key)
    if (recentValue !== undefined) return recentValue
    const oldValue = this.#oldEntries.get(key)
    if (oldValue !== undefined) this.set(key, oldValue)
    return oldValue
  }

  set(key: K, value: V): void {
    const replacedValue = this.#recentEntries.get(key)
    const addedWeight = this.#weightOf(value) - (replacedValue === undefined ? 0 : this.#weightOf(replacedValue))
    if (this.#recentWeight + addedWeight > this.#halfMax && this.#recentEntries.size > 0) {
      this.evictOld()
      this.#recentWeight = this.#weightOf(value)
    } else this.#recentWeight += addedWeight
    this.#recentEntries.set(key, value)
  }

  delete(key: K): void {
    const recentValue = this.#recentEntries.get(key)
    if (recentValue !== undefined) this.#recentWeight -= this.#weightOf(recentValue)
    this.#recentEntries.delete(key)
    this.#oldEntries.delete(key)
  }

  /** The number of entries. One that was copied to the recent generation counts twice until the old one is evicted. */
  get size(): number {
    return this.#recentEntries.size + this.#oldEntries.size
  }

  /** Evicts the old generation, which the recent one replaces. Called twice, it evicts all entries not used in between. */
  evictOld(): void {
    this.#oldEntries = this.#recentEntries
    this.#recentEntries = new Map()
    this.#recentWeight = 0
  }
}
