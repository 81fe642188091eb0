// An approximate LRU cache with two generations. When the recent generation is full, it replaces the old one, whose entries
// are evicted. get() copies an entry of the old generation to the recent one. Evictions need no search.
//   half size 2:  set a, b → [a b | ]   set c → [c | a b]   get a → [c a | a b]   set d → [d | c a]   b is evicted
export class LruCache<K, V> {
  readonly #halfMax: number
  #recent = new Map<K, V>()
  #old = new Map<K, V>()

  /** Holds at most `max` entries, and at least the most recent half of them. */
  constructor(max: number) {
    this.#halfMax = Math.max(1, Math.floor(max / 2))
  }

  get(key: K): V | undefined {
    const recent = this.#recent.get(key)
    if (recent !== undefined) return recent
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#recent.size >= this.#halfMax && !this.#recent.has(key)) {
      this.#old = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, value)
  }
}
