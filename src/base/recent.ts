// A memory of what was used lately. Entries live in two halves: when the younger is full it becomes the older, and what
// the older still held is forgotten. So nothing is ever looked for to be thrown out, and use keeps an entry alive.
//   half size 2:  set a, b → [a b | ]   set c → [c | a b]   get a → [c a | a b]   set d → [d | c a]   b is forgotten
export class Recent<K, V> {
  readonly #halfMax: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  /** Holds between half and all of this many. */
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
