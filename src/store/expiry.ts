// ExpiryQueue: a heap of versions ordered by expiry time, and the transaction that deletes expired keys.
// Superseded versions stay in the heap and are skipped when they are due, so renewing a key costs one push.
import type { Store } from './store.ts'
import type { Version } from './version.ts'

const STALE_MIN = 1_024 // superseded versions are removed once there are this many and they are the majority

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

  /** When the next key expires. */
  nextMs(): number | undefined {
    while (this.#heap[0] && !this.#isNewest(this.#heap[0])) this.#removeFirst()
    return this.#heap[0]?.expiresAtMs
  }

  /** Removes and returns up to `max` expired versions, earliest first. */
  takeDue({ nowMs, max }: { nowMs: number; max: number }): Version[] {
    const due: Version[] = []
    while (due.length < max && (this.nextMs() ?? Number.POSITIVE_INFINITY) <= nowMs) {
      due.push(this.#heap[0] as Version)
      this.#removeFirst()
    }
    return due
  }

  #sweep(): void {
    const versions = this.#heap.filter(this.#isNewest)
    versions.sort((a, b) => expiryOf(a) - expiryOf(b)) // a sorted array is a heap
    this.#heap = versions
    this.#lengthAfterSweep = versions.length
  }

  #removeFirst(): void {
    const last = this.#heap.pop() as Version
    if (this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink(0)
  }

  #rise(at: number): void {
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!this.#isEarlier(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #sink(at: number): void {
    for (;;) {
      const left = 2 * at + 1
      let earliest = at
      if (left < this.#heap.length && this.#isEarlier(left, earliest)) earliest = left
      if (left + 1 < this.#heap.length && this.#isEarlier(left + 1, earliest)) earliest = left + 1
      if (earliest === at) return
      this.#swap(at, earliest)
      at = earliest
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
 * Deletes the expired keys that have not changed since. One transaction per key, so that a conflict on one key does
 * not delay the others; group commit makes them durable together anyway.
 */
export async function deleteExpired({ transact }: Pick<Store, 'transact'>, due: readonly Version[]): Promise<void> {
  const expire = ({ key, revision }: Version) =>
    transact((view) => (view.get(key)?.modRevision === revision ? [{ delete: key }] : []))
  await Promise.all(due.map(expire))
}
