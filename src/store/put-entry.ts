// A put as a transaction after it sees it. The bytes of a passing one are asked for only if somebody reads them.
import type { Entry, Put, Revision } from './store.ts'

export function entryOfPut(put: Put, modRevision: Revision, createRevision: Revision): Entry {
  if (put.isPassing) return new PassingEntry(put, modRevision, createRevision)
  return { key: put.put, value: put.value, modRevision, createRevision }
}

class PassingEntry implements Entry {
  readonly passing: Put
  readonly modRevision: Revision
  readonly createRevision: Revision

  constructor(passing: Put, modRevision: Revision, createRevision: Revision) {
    this.passing = passing
    this.modRevision = modRevision
    this.createRevision = createRevision
  }

  get key(): string {
    return this.passing.put
  }

  get value(): Uint8Array {
    return this.passing.value
  }
}
