// The entry that later transactions of a group commit read for a put. For a coalescable put the entry calls the
// `value` getter only when it is read.
import type { Entry, Put, Revision } from './store.ts'

export function entryOfPut(put: Put, modRevision: Revision, createRevision: Revision): Entry {
  if (put.isCoalescable) return new CoalescableEntry(put, modRevision, createRevision)
  return { key: put.put, value: put.value, modRevision, createRevision }
}

class CoalescableEntry implements Entry {
  readonly coalescable: Put
  readonly modRevision: Revision
  readonly createRevision: Revision

  constructor(passing: Put, modRevision: Revision, createRevision: Revision) {
    this.coalescable = passing
    this.modRevision = modRevision
    this.createRevision = createRevision
  }

  get key(): string {
    return this.coalescable.put
  }

  get value(): Uint8Array {
    return this.coalescable.value
  }
}
