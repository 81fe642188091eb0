// Medium: the durable storage of revisioned-store.ts, which writes batches of records atomically. memory.ts and lmdb.ts
// implement it; the simulator wraps a medium to inject faults.
import type { Revision } from './store.ts'

/** A record without its value. The store keeps headers in memory. Records are identified by their revision. */
export interface RecordHeader {
  readonly key: string
  readonly revision: Revision
  readonly createRevision: Revision
  readonly isDeleted: boolean
  readonly expiresAtMs: number | undefined
  /** The checksum of the stored value (checksum.ts). */
  readonly checksum: number
  /** Size of the stored value. */
  readonly valueBytes: number
}

export interface MediumRecord extends RecordHeader {
  /** Empty for a tombstone. */
  readonly value: Uint8Array
}

/** The oldest revision with a complete history, for each class of keys. The medium persists the floors. */
export interface Floors {
  readonly ordinary: Revision
  /** For keys below `briefPrefixes`. */
  readonly brief: Revision
  readonly briefPrefixes: readonly string[]
}

export interface MediumBatch {
  /** Records to append in revision order, after all existing records. */
  readonly append: readonly MediumRecord[]
  /** Records to delete. A record that does not exist is ignored. */
  readonly drop: readonly Revision[]
  /** Set whenever `drop` is not empty. */
  readonly floors?: Floors
}

export interface Medium {
  /** Visits all records in revision order and returns the floors last written. Called once, before any other method. */
  scan(visit: (header: RecordHeader) => void): Floors
  /**
   * Resolves when the whole batch would survive a power failure. Rejects with AppendRejectedError if no part of it was
   * written, and with MediumLostError if a restart would not find it. After any other error, the batch may or may not have been
   * written. The store closes after every error other than AppendRejectedError.
   */
  write(batch: MediumBatch, options?: WriteOptions): Promise<void>
  /**
   * Resolves after the event loop has handled the input that has arrived, so that its transactions are in the next batch. Present if
   * `write` supports `isBlocking`.
   */
  whenPolled?(): Promise<void>
  /**
   * Returns the value of a record that was written and has not been dropped, or undefined if the medium has lost it. Throws
   * UnreadableValueError.
   */
  read(revision: Revision): Uint8Array | undefined
  /**
   * Reads the headers and values of the records after `afterRevision`, in revision order, until one of the limits is
   * reached. Absent if the medium cannot lose data.
   */
  verify?(options: VerifyOptions): VerifiedSlice
  /** Throws a MediumLostError if the storage was removed or replaced. The store calls it regularly. */
  check?(): void
  bytesOnDisk(): number
  close(): Promise<void>
}

export interface WriteOptions {
  /** Whether to write in the thread of the event loop, which waits for the disk. Default: false. */
  readonly isBlocking?: boolean
}

export interface VerifyOptions {
  readonly afterRevision: Revision
  readonly recordsMax: number
  readonly bytesMax: number
}

export interface VerifiedSlice {
  /** The last record that was read. Undefined if there is none after `afterRevision`. */
  readonly lastRevision: Revision | undefined
  readonly bytes: number
  readonly damagedRecords: readonly { readonly key: string; readonly revision: Revision; readonly reason: string }[]
  /** Ranges of revisions, from `first` to `last`, whose headers cannot be read. The store may lack some of the revisions. */
  readonly damagedRanges: readonly { readonly first: Revision; readonly last: Revision; readonly reason: string }[]
}

export const NO_FLOORS: Floors = { ordinary: 0, brief: 0, briefPrefixes: [] }

/** Thrown if the medium wrote nothing of the batch and remains usable. */
export class AppendRejectedError extends Error {
  override readonly name = 'AppendRejectedError'
}

/** Thrown if the storage cannot read a value. The message is the reason. */
export class UnreadableValueError extends Error {
  override readonly name = 'UnreadableValueError'
}

/** Thrown if the open storage is no longer the one at its path, so that a restart would not find what is written to it. */
export class MediumLostError extends Error {
  override readonly name = 'MediumLostError'
  /** The message without the path. */
  readonly publicMessage: string
  constructor({ path, change }: { readonly path: string; readonly change: string }) {
    super(`${path} ${change} while the store was open`)
    this.publicMessage = `a file of the store ${change} while the store was open`
  }
}
