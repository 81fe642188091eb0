// Maps revisions of the store to etcd revisions. An etcd revision can contain a group of transactions (commit-queue.ts), so
// each write also has a sub-revision, which is its index in the group:
//   revision = (etcd revision - etcd revision of the store's creation) x SUB_REVISIONS + sub
// A new store starts at revision 0 regardless of etcd's revision, and revisions increase with gaps.
import type { Revision } from '../store.ts'

export const SUB_REVISIONS = 1024 // the maximum number of writes in a group; leaves 2^43 etcd revisions below 2^53

export class RevisionMapping {
  readonly #base: number

  /** `base` is the etcd revision in which the store was created. */
  constructor({ base }: { base: number }) {
    this.#base = base
  }

  revisionOf(etcdRevision: number | bigint | undefined, sub = 0): Revision {
    return (Number(etcdRevision) - this.#base) * SUB_REVISIONS + sub
  }

  etcdRevisionOf(revision: Revision): number {
    return Math.floor(revision / SUB_REVISIONS) + this.#base
  }

  subOf(revision: Revision): number {
    return revision % SUB_REVISIONS
  }
}
