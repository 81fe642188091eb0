// Creates the entry that later transactions of a group commit read for a put. The entry of a coalescable put calls the
// `value` getter of the put only when its own value is read.
import type { Entry, Put, Revision } from './store.ts'

export function entryOfPut(put: Put, modRevision: Revision, createRevision: Revision): Entry {
  if (put.isCoalescable) return new CoalescableEntry(put, modRevision, createRevision)
  return { key: put.put, value: put.value, modRevision, createRevision }
}

class CoalescableEntry implements Entry {
  readonly coalescablePut: Put
  readonly modRevision: Revision
  readonly createRevision: Revision

  constructor(write: Put, modRevision: Revision, createRevision: Revision) {
    this.coalescablePut = write
    this.modRevision = modRevision
    this.createRevision = createRevision
  }

  get key(): string {
    return this.coalescablePut.put
  }

  get value(): Uint8Array {
    return this.coalescablePut.value
  }
}
