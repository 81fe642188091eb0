// Which keys to delete when: a heap of versions by their moment.
// A version that was superseded meanwhile is skipped when its turn comes, so renewing a key costs one push.
import type { Store } from './store.ts'
import type { Version } from './version.ts'

const STALE_MIN = 1_024 // superseded versions are swept out once they are this many and the majority

export class ExpiryQueue {
  readonly #isNewest: (version: Version) => boolean
  #heap: Version[] = []
  #lengthAfterSweep = 0

  constructor({ isNewest }: { isNewest: (version: Version) => boolean }) {
    this.#isNewest = isNewest
  }

  /** Takes note of a version that expires. */
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

  /** Takes out up to `max` versions whose moment has come, earliest first. */
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
    versions.sort((a, b) => momentOf(a) - momentOf(b)) // a sorted array is a heap
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
    return momentOf(this.#heap[a] as Version) < momentOf(this.#heap[b] as Version)
  }

  #swap(a: number, b: number): void {
    const version = this.#heap[a] as Version
    this.#heap[a] = this.#heap[b] as Version
    this.#heap[b] = version
  }
}

const momentOf = (version: Version): number => version.expiresAtMs ?? Number.POSITIVE_INFINITY

/**
 * Deletes what is due and has not changed since. Each key in a transaction of its own, so that one that
 * changes meanwhile does not hold up the others; they are durable together anyway (a group commit).
 */
export async function deleteExpired({ transact }: Pick<Store, 'transact'>, due: readonly Version[]): Promise<void> {
  const expire = ({ key, revision }: Version) =>
    transact((view) => (view.get(key)?.modRevision === revision ? [{ delete: key }] : []))
  await Promise.all(due.map(expire))
}
