// A FIFO queue in which take() has amortized constant time.
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
    this.#items[this.#head++] = undefined as T // release the reference
    if (this.#head > COMPACTION_THRESHOLD && this.#head > this.#items.length / 2) {
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

/** The array is compacted when more than this many of its items, and more than half of them, have been taken. */
const COMPACTION_THRESHOLD = 1_024
