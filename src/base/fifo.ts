// First in, first out. Taking costs the same however many wait: a Set or an array would walk over, or move, what has
// been taken before.
export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  add(item: T): void {
    this.#items.push(item)
  }

  take(): T | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined as T // nothing is kept alive by having waited here
    if (this.#head > TAKEN_MAX && this.#head > this.#items.length / 2) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  clear(): void {
    this.#items = []
    this.#head = 0
  }
}

/** Places of taken items are given back when there are this many of them, and more than still wait. */
const TAKEN_MAX = 1_024
