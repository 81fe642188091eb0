// An approximate LRU cache in two generations: a full young generation replaces the old one, whose entries are evicted.
// get() copies an entry of the old generation to the young one. Eviction needs no search.
//   half size 2:  set a, b → [a b | ]   set c → [c | a b]   get a → [c a | a b]   set d → [d | c a]   b is evicted
export class LruCache<K, V> {
  readonly #halfMax: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  /** Holds at most `max` entries, and at least the most recent half of them. */
  constructor(max: number) {
    this.#halfMax = Math.max(1, Math.floor(max / 2))
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#halfMax && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}
