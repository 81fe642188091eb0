// A sorted array with binary search. Insertions and removals move the items behind them, which for tens of thousands of
// items is faster than a tree.

export class SortedList<T> {
  readonly #items: T[] = []
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  add(item: T): void {
    const at = this.#firstWhere((other) => this.#compare(other, item) >= 0)
    this.#items.splice(at, 0, item)
  }

  /** Removes the item that compares equal. */
  remove(item: T): void {
    const at = this.#firstWhere((other) => this.#compare(other, item) >= 0)
    const found = this.#items[at]
    if (found !== undefined && this.#compare(found, item) === 0) this.#items.splice(at, 1)
  }

  /** Items from the first one that satisfies the condition. The condition must hold for all items after it. */
  *from(isReached: (item: T) => boolean): Generator<T> {
    for (let at = this.#firstWhere(isReached); at < this.#items.length; at++) yield this.#items[at] as T
  }

  #firstWhere(holds: (item: T) => boolean): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holds(this.#items[middle] as T)) high = middle
      else low = middle + 1
    }
    return low
  }
}
