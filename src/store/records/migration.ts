// Migrates a store on LMDB from format 2 to format 3, in which record headers contain checksums. Each batch is one commit, and
// the description has migratingFrom until all batches are committed. An interrupted migration therefore continues at the next
// start. Values stay where they are; a new header has the checksum of its value.

import type { RecordHeader } from '../medium.ts'
import type { Revision } from '../store.ts'
import { checksumOf } from './checksum.ts'
import type { OldHeader } from './record-codec.ts'

const BATCH_RECORDS = 1_000
const BATCH_BYTES = 8 * 1024 * 1024

export interface MigrationProgress {
  readonly from: number
  readonly to: number
  readonly recordsDone: number
  readonly recordsTotal: number
}

export interface MigratedRecords {
  /** Returns the headers without a checksum after a revision, in revision order. */
  oldHeaders(afterRevision: Revision): Iterable<{ readonly revision: Revision; readonly header: OldHeader }>
  readValue(revision: Revision): Uint8Array | undefined
  /** Replaces headers in one commit. */
  replace(headers: readonly RecordHeader[]): Promise<void>
}

/** Replaces all old headers. Calls `onBatch` after each commit with the number of headers that it replaced. */
export async function addChecksums(records: MigratedRecords, onBatch: (headers: number) => void): Promise<void> {
  for (let afterRevision: Revision = 0; ; ) {
    const headers = nextBatch(records, afterRevision)
    const lastHeader = headers.at(-1)
    if (!lastHeader) return
    await records.replace(headers)
    onBatch(headers.length)
    afterRevision = lastHeader.revision
  }
}

function nextBatch(records: MigratedRecords, afterRevision: Revision): RecordHeader[] {
  const headers: RecordHeader[] = []
  let bytes = 0
  for (const { revision, header } of records.oldHeaders(afterRevision)) {
    const { key, createRevision, expiresAtMs, isDeleted } = header
    const value = isDeleted ? NO_VALUE : records.readValue(revision)
    if (!value) throw new Error(`the record of ${key} at revision ${revision} is damaged: its value is missing`)
    const valueBytes = value.length
    headers.push({ key, revision, createRevision, expiresAtMs, isDeleted, checksum: checksumOf(value), valueBytes })
    bytes += valueBytes
    if (headers.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) break
  }
  return headers
}

const NO_VALUE = new Uint8Array(0)
