// A map of sorted lists with two keys: a partition and a group within it. Empty groups and partitions are removed.
import { SortedList } from '../../base/sorted-list.ts'

export class GroupedLists<G, T> {
  readonly #partitions = new Map<string, Map<G, SortedList<T>>>()
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  /** Returns the groups of a partition. No group is empty. */
  groups(partition: string): Iterable<[G, SortedList<T>]> {
    return this.#partitions.get(partition) ?? []
  }

  add(partition: string, group: G, item: T): void {
    const groups = this.#partitions.get(partition) ?? new Map<G, SortedList<T>>()
    this.#partitions.set(partition, groups)
    const list = groups.get(group) ?? new SortedList<T>(this.#compare)
    groups.set(group, list)
    list.add(item)
  }

  remove(partition: string, group: G, item: T): void {
    const groups = this.#partitions.get(partition)
    const list = groups?.get(group)
    list?.remove(item)
    if (list?.size === 0) groups?.delete(group)
    if (groups?.size === 0) this.#partitions.delete(partition)
  }
}
