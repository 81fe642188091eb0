// The store's revisions and etcd's. One revision of etcd can hold a group of transactions (commit-queue.ts), and each
// needs a revision of its own: revision = (etcd's revision - that of the store's creation) x span + place in the group.
// So numbers rise with time, but not by one. The span is noted in `about` when the store is created, and never changes.
import type { Revision } from '../store.ts'

export const SPAN = 1024 // more than a group ever holds; 2^53 revisions are still enough for centuries

export class Numbering {
  readonly #base: number
  readonly #span: number

  constructor({ base, span }: { base: number; span: number }) {
    this.#base = base
    this.#span = span
  }

  /** At most this many transactions fit into one revision of etcd. */
  get span(): number {
    return this.#span
  }

  revisionOf(etcdRevision: number | bigint | undefined, place = 0): Revision {
    return (Number(etcdRevision) - this.#base) * this.#span + place
  }

  etcdRevisionOf(revision: Revision): number {
    return Math.floor(revision / this.#span) + this.#base
  }

  placeOf(revision: Revision): number {
    return revision % this.#span
  }
}
