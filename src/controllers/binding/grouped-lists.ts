// Items in order, kept by shelf and, within it, by group. Shelves and groups come and go with what is in them.
import { SortedList } from '../../base/sorted-list.ts'

export class GroupedLists<G, T> {
  readonly #shelves = new Map<string, Map<G, SortedList<T>>>()
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  /** None of them is empty. */
  groups(shelf: string): Iterable<[G, SortedList<T>]> {
    return this.#shelves.get(shelf) ?? []
  }

  add(shelf: string, group: G, item: T): void {
    const groups = this.#shelves.get(shelf) ?? new Map<G, SortedList<T>>()
    this.#shelves.set(shelf, groups)
    const list = groups.get(group) ?? new SortedList<T>(this.#compare)
    groups.set(group, list)
    list.add(item)
  }

  remove(shelf: string, group: G, item: T): void {
    const groups = this.#shelves.get(shelf)
    const list = groups?.get(group)
    list?.remove(item)
    if (list?.size === 0) groups?.delete(group)
    if (groups?.size === 0) this.#shelves.delete(shelf)
  }
}
