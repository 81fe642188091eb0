// Counts rows by a value, and updates the counts with each changed row.

export class Tally<R> {
  readonly counts = new Map<string, number>()
  readonly #read: (row: R) => string

  constructor(read: (row: R) => string) {
    this.#read = read
  }

  change(before: R | undefined, after: R | undefined): void {
    const from = before && this.#read(before)
    const to = after && this.#read(after)
    if (from === to) return
    if (from !== undefined) this.#add(from, -1)
    if (to !== undefined) this.#add(to, 1)
  }

  count(value: string): number {
    return this.counts.get(value) ?? 0
  }

  /** Returns the values that occur, except the empty one, in alphabetical order. */
  values(): string[] {
    return [...this.counts.keys()].filter((value) => value !== '').sort()
  }

  #add(value: string, amount: number): void {
    const count = this.count(value) + amount
    if (count === 0) this.counts.delete(value)
    else this.counts.set(value, count)
  }
}
