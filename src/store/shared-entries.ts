// Lets lists of the same prefix share the entries that they read from the medium, as long as one of the lists is in use.
import type { Entry } from './store.ts'
import type { Version } from './version.ts'

/** Shorter lists are not shared. */
const ENTRIES_MIN = 100
/** With at least this many prefixes, those whose list is no longer in use are removed. */
const PREFIXES_CLEANED_MIN = 64

export class SharedEntries {
  readonly #listByPrefix = new Map<string, WeakRef<readonly Entry[]>>()
  /** The number of prefixes at which the map is cleaned. */
  #cleanAt = PREFIXES_CLEANED_MIN

  /** The number of cached prefixes, some of which may have no list in use. */
  get prefixCount(): number {
    return this.#listByPrefix.size
  }

  /** Returns a function that finds the entry of a version in memory. The function must be called in key order. */
  reader(prefix: string): (version: Version) => Entry | undefined {
    const entries = this.#listByPrefix.get(prefix)?.deref() ?? []
    let index = 0
    return ({ key, revision }) => {
      while (index < entries.length && entries[index]!.key < key) index++
      const entry = entries[index]
      return entry?.key === key && entry.modRevision === revision ? entry : undefined
    }
  }

  /** Shares the entries of a list, unless a longer list is shared already. */
  share(prefix: string, entries: readonly Entry[]): void {
    if (entries.length < ENTRIES_MIN) return
    const sharedList = this.#listByPrefix.get(prefix)?.deref()
    if (sharedList === undefined || sharedList.length <= entries.length)
      this.#listByPrefix.set(prefix, new WeakRef(entries))
    if (this.#listByPrefix.size >= this.#cleanAt) this.#clean()
  }

  /** Removes the prefixes whose list is no longer in use. Doubling the threshold keeps the cost per list constant. */
  #clean(): void {
    for (const [prefix, list] of this.#listByPrefix) if (!list.deref()) this.#listByPrefix.delete(prefix)
    this.#cleanAt = Math.max(PREFIXES_CLEANED_MIN, 2 * this.#listByPrefix.size)
  }
}
