// What a revisioned store stands on: a place that keeps batches of records, all of a batch or none of it.
// memory.ts and lmdb.ts implement it; the simulator wraps one to make it fail. The store above it is
// revisioned-store.ts, which alone decides what is written and what may be dropped.
import type { Revision } from './store.ts'

/** What a record says about its key; all that is kept in memory. Its revision names it. */
export interface RecordHeader {
  readonly key: string
  readonly revision: Revision
  readonly createRevision: Revision
  readonly deleted: boolean
  readonly expiresAtMs: number | undefined
}

export interface MediumRecord extends RecordHeader {
  /** Empty for a tombstone. */
  readonly value: Uint8Array
}

/** From which revision on history is complete. */
export interface Floors {
  readonly ordinary: Revision
  readonly brief: Revision
  /** The prefixes `brief` speaks of. */
  readonly briefPrefixes: readonly string[]
}

export interface MediumBatch {
  /** In order of their revisions, all of them after everything appended before. */
  readonly append: readonly MediumRecord[]
  /** Dropping what is not there is no error. */
  readonly drop: readonly Revision[]
  /** Given whenever something is dropped. */
  readonly floors?: Floors
}

export interface Medium {
  /** Visits every record in order of their revisions and answers the floors last written. Called once, first. */
  scan(visit: (header: RecordHeader) => void): Floors
  /**
   * Resolves once the whole batch would survive a power cut. Rejects with AppendRefusedError if none of it was or
   * will be kept; any other error means that nobody can know, and the store ends.
   */
  write(batch: MediumBatch): Promise<void>
  /** The value of a record that was written and not dropped. */
  read(revision: Revision): Uint8Array
  bytesOnDisk(): number
  close(): Promise<void>
}

export const NO_FLOORS: Floors = { ordinary: 0, brief: 0, briefPrefixes: [] }

export class AppendRefusedError extends Error {
  override readonly name = 'AppendRefusedError'
}
