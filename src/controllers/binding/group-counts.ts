// Counts the objects of a cache by groups. A change costs as much in a cache with a million objects as in a small one, and reading
// the counts costs as much as there are groups.

type Group = Readonly<Record<string, string>>

interface GroupCount<G> {
  readonly group: G
  count: number
}

/** Handlers for the changes of a cache. */
export class GroupCounts<T, G extends Group> {
  readonly #groupOf: (object: T) => G
  /** By the values of the group. Bounded by the number of objects, because groups without objects are removed. */
  readonly #counts = new Map<string, GroupCount<G>>()

  /** `groupOf` must depend on the object alone. It returns the same fields in the same order for all objects. */
  constructor(groupOf: (object: T) => G) {
    this.#groupOf = groupOf
  }

  /** Returns the groups that have objects. */
  groups(): Iterable<Readonly<GroupCount<G>>> {
    return this.#counts.values()
  }

  readonly added = (object: T): void => {
    const group = this.#groupOf(object)
    this.#add(keyOf(group), group)
  }

  readonly updated = (next: T, old: T): void => {
    const [group, oldGroup] = [this.#groupOf(next), this.#groupOf(old)]
    const [key, oldKey] = [keyOf(group), keyOf(oldGroup)]
    if (key === oldKey) return
    this.#remove(oldKey)
    this.#add(key, group)
  }

  /** The last state may be in another group than the one that was counted: a write can change an object and delete it. */
  readonly deleted = (_lastState: T, cached: T): void => this.#remove(keyOf(this.#groupOf(cached)))

  #add(key: string, group: G): void {
    const entry = this.#counts.get(key)
    if (entry) entry.count++
    else this.#counts.set(key, { group, count: 1 })
  }

  #remove(key: string): void {
    const entry = this.#counts.get(key)
    if (entry && --entry.count === 0) this.#counts.delete(key)
  }
}

function keyOf(group: Group): string {
  let key = ''
  for (const name in group) key += `${group[name]}\n`
  return key
}
