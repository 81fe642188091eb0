// A sorted array with binary search.

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
    const index = this.#findFirstIndex((listItem) => this.#compare(listItem, item) >= 0)
    this.#items.splice(index, 0, item)
  }

  /** Removes an item that compares equal, if there is one. */
  remove(item: T): void {
    const index = this.#findFirstIndex((listItem) => this.#compare(listItem, item) >= 0)
    const candidate = this.#items[index]
    if (candidate !== undefined && this.#compare(candidate, item) === 0) this.#items.splice(index, 1)
  }

  /** Yields the items from the first one that satisfies the condition, which must hold for all items after it. */
  *itemsFrom(matches: (item: T) => boolean): Generator<T> {
    for (let index = this.#findFirstIndex(matches); index < this.#items.length; index++) yield this.#items[index] as T
  }

  #findFirstIndex(matches: (item: T) => boolean): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (matches(this.#items[middle] as T)) high = middle
      else low = middle + 1
    }
    return low
  }
}
