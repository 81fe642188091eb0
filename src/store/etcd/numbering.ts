// The store's revisions and etcd's. One revision of etcd can hold a group of transactions (commit-queue.ts), and each of
// their writes needs a revision of its own:
//   revision = (etcd's revision - that of the store's creation) x SPAN + place of the write in the group
// So a new store begins at 0 whatever etcd has seen before, and numbers rise with time, but not by one.
import type { Revision } from '../store.ts'

export const SPAN = 1024 // no group may hold more writes; below 2^53 there is room for 8 million million groups

export class Numbering {
  readonly #base: number

  /** base: etcd's revision when the store was created. */
  constructor({ base }: { base: number }) {
    this.#base = base
  }

  revisionOf(etcdRevision: number | bigint | undefined, place = 0): Revision {
    return (Number(etcdRevision) - this.#base) * SPAN + place
  }

  etcdRevisionOf(revision: Revision): number {
    return Math.floor(revision / SPAN) + this.#base
  }

  placeOf(revision: Revision): number {
    return revision % SPAN
  }
}
