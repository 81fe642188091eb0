// The sorted rows of a table that match a filter. A change moves only the changed rows, so that 50,000 rows are not sorted again
// for one of them.

export interface Identified {
  readonly uid: string
}

interface ViewRules<R> {
  matches(row: R): boolean
  /** Rows that compare as equal are ordered by uid. */
  compare(a: R, b: R): number
}

/** The row before and after a change; absent before it existed and after it was deleted. */
export interface RowChange<R> {
  readonly before?: R
  readonly after?: R
}

/** Above this share of changed rows, sorting everything is faster than moving single rows. */
const RESORT_SHARE = 0.05

export class SortedView<R extends Identified> {
  rows: R[] = []
  #rules: ViewRules<R>

  constructor(rules: ViewRules<R>) {
    this.#rules = rules
  }

  /** Replaces the rules and all rows. */
  rebuild(rules: ViewRules<R>, rows: Iterable<R>): void {
    this.#rules = rules
    const matching: R[] = []
    for (const row of rows) if (rules.matches(row)) matching.push(row)
    this.rows = matching.sort(this.#compare)
  }

  /** Applies changes. `all` is read only if enough rows have changed to make a full sort faster. */
  apply(changes: readonly RowChange<R>[], all: () => Iterable<R>): void {
    if (changes.length > 20 && changes.length > this.rows.length * RESORT_SHARE) {
      this.rebuild(this.#rules, all())
      return
    }
    const rows = this.rows.slice() // a new array, so that a table notices the change
    for (const { before, after } of changes) {
      if (before && this.#rules.matches(before)) {
        const index = this.#indexOf(rows, before)
        if (rows[index]?.uid === before.uid) {
          if (after && this.#rules.matches(after) && this.#compare(before, after) === 0) {
            rows[index] = after
            continue
          }
          rows.splice(index, 1)
        }
      }
      if (after && this.#rules.matches(after)) rows.splice(this.#indexOf(rows, after), 0, after)
    }
    this.rows = rows
  }

  readonly #compare = (a: R, b: R): number => this.#rules.compare(a, b) || (a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0)

  /** Returns the index of the row, or the index at which it belongs. */
  #indexOf(rows: readonly R[], row: R): number {
    let low = 0
    let high = rows.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(rows[middle]!, row) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
