// ExpiryQueue: a heap of versions ordered by expiry time, and the transactions that delete expired keys.
// Superseded versions stay in the heap and are skipped when they expire, so renewing a key costs one push.
import type { Store } from './store.ts'
import type { Version } from './version.ts'

const STALE_MIN = 1_024 // the heap grows by at least this many versions before superseded ones are removed

export class ExpiryQueue {
  readonly #isNewest: (version: Version) => boolean
  #heap: Version[] = []
  #lengthAfterSweep = 0

  constructor({ isNewest }: { isNewest: (version: Version) => boolean }) {
    this.#isNewest = isNewest
  }

  /** Adds a version that has an expiry time. */
  add(version: Version): void {
    this.#heap.push(version)
    this.#rise(this.#heap.length - 1)
    if (this.#heap.length > 2 * this.#lengthAfterSweep + STALE_MIN) this.#sweep()
  }

  /** Returns the time at which the next key expires. */
  nextMs(): number | undefined {
    while (this.#heap[0] && !this.#isNewest(this.#heap[0])) this.#removeFirst()
    return this.#heap[0]?.expiresAtMs
  }

  /** Removes and returns up to `max` expired versions, earliest first. */
  takeDue({ nowMs, max }: { nowMs: number; max: number }): Version[] {
    const expiredVersions: Version[] = []
    while (expiredVersions.length < max && (this.nextMs() ?? Number.POSITIVE_INFINITY) <= nowMs) {
      expiredVersions.push(this.#heap[0] as Version)
      this.#removeFirst()
    }
    return expiredVersions
  }

  #sweep(): void {
    const versions = this.#heap.filter(this.#isNewest)
    versions.sort((a, b) => expiryOf(a) - expiryOf(b)) // a sorted array is a heap
    this.#heap = versions
    this.#lengthAfterSweep = versions.length
  }

  #removeFirst(): void {
    const lastVersion = this.#heap.pop() as Version
    if (this.#heap.length === 0) return
    this.#heap[0] = lastVersion
    this.#sink(0)
  }

  #rise(index: number): void {
    while (index > 0) {
      const parent = (index - 1) >>> 1
      if (!this.#isEarlier(index, parent)) return
      this.#swap(index, parent)
      index = parent
    }
  }

  #sink(index: number): void {
    for (;;) {
      const leftChild = 2 * index + 1
      let earliest = index
      if (leftChild < this.#heap.length && this.#isEarlier(leftChild, earliest)) earliest = leftChild
      if (leftChild + 1 < this.#heap.length && this.#isEarlier(leftChild + 1, earliest)) earliest = leftChild + 1
      if (earliest === index) return
      this.#swap(index, earliest)
      index = earliest
    }
  }

  #isEarlier(a: number, b: number): boolean {
    return expiryOf(this.#heap[a] as Version) < expiryOf(this.#heap[b] as Version)
  }

  #swap(a: number, b: number): void {
    const version = this.#heap[a] as Version
    this.#heap[a] = this.#heap[b] as Version
    this.#heap[b] = version
  }
}

const expiryOf = (version: Version): number => version.expiresAtMs ?? Number.POSITIVE_INFINITY

/**
 * Deletes the expired keys that have not changed. Each key has its own transaction, so that a conflict on one key does not
 * delay the others.
 */
export async function deleteExpired(
  { transact }: Pick<Store, 'transact'>,
  expiredVersions: readonly Version[],
): Promise<void> {
  const expire = ({ key, revision }: Version) =>
    transact((view) => (view.get(key)?.modRevision === revision ? [{ delete: key }] : []))
  await Promise.all(expiredVersions.map(expire))
}
