// TransactionEntries caches small entries that transactions have read from the medium, such as namespaces, storage classes and
// quotas. A version never changes, so an entry stays valid.
import type { Clock } from '../base/clock.ts'
import { ExpiringCache } from '../base/expiring-cache.ts'
import { DamagedEntry } from './damaged-entry.ts'
import type { Entry } from './store.ts'
import { storedLength } from './value-transformer.ts'
import type { Version } from './version.ts'

const BYTES_MAX = 256 * 1024
const ENTRY_BYTES_MAX = 8 * 1024 // a larger entry is not cached
const ENTRY_OVERHEAD_BYTES = 200 // approximate size of an entry without its value
/** An entry that no transaction reads for one to two intervals is evicted. */
const EVICTION_INTERVAL_MS = 30_000

export class TransactionEntries {
  readonly #entries: ExpiringCache<Version, Entry>

  constructor(clock: Pick<Clock, 'after'>) {
    this.#entries = new ExpiringCache({
      clock,
      intervalMs: EVICTION_INTERVAL_MS,
      max: BYTES_MAX,
      weightOf: (entry) => ENTRY_OVERHEAD_BYTES + storedLength(entry),
    })
  }

  /** Returns the cached entry of this version, or reads it. */
  entryOf(version: Version, read: () => Entry): Entry {
    const cachedEntry = this.#entries.get(version)
    if (cachedEntry) return cachedEntry
    const entry = read()
    if (!(entry instanceof DamagedEntry) && storedLength(entry) <= ENTRY_BYTES_MAX) this.#entries.set(version, entry)
    return entry
  }
}
