// Lets lists of the same prefix share the entries that they read from the medium, as long as one of the lists is in use.
import type { Entry } from './store.ts'
import type { Version } from './version.ts'

/** Shorter lists are not shared. */
const ENTRIES_MIN = 100

export class SharedEntries {
  readonly #listByPrefix = new Map<string, WeakRef<readonly Entry[]>>()

  /** Returns a function that returns the entry of a version if it is in memory. It must be called in the order of keys. */
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
    const shared = this.#listByPrefix.get(prefix)?.deref()
    if (shared === undefined || shared.length <= entries.length) this.#listByPrefix.set(prefix, new WeakRef(entries))
  }
}
