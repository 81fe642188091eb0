// The entry of a record whose stored value is damaged. Reading its value throws, so that only readers of this entry fail.
import type { DamagedRecordError, Entry, Revision } from './store.ts'

export class DamagedEntry implements Entry {
  readonly key: string
  readonly modRevision: Revision
  readonly createRevision: Revision
  readonly #error: DamagedRecordError

  constructor(error: DamagedRecordError, createRevision: Revision) {
    this.key = error.key
    this.modRevision = error.revision
    this.createRevision = createRevision
    this.#error = error
  }

  get value(): never {
    throw this.#error
  }
}
