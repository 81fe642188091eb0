// A store that forgets everything with its process: for tests, and for simulated clusters.
// Its medium can be kept and handed to the next store, as a disk would be.
import type { Clock } from '../base/clock.ts'
import { type Medium, type MediumRecord, NO_FLOORS, type RecordPosition } from './medium.ts'
import { openRevisionedStore } from './revisioned-store.ts'
import type { HistoryOptions, Revision, Store } from './store.ts'

export interface MemoryStoreOptions {
  readonly clock: Clock
  readonly history?: HistoryOptions
  /** Default: an empty memoryMedium(). */
  readonly medium?: Medium
}

export function openMemoryStore({ clock, history, medium = memoryMedium() }: MemoryStoreOptions): Promise<Store> {
  return openRevisionedStore({ medium, clock, history })
}

export function memoryMedium(): Medium {
  const records = new Map<Revision, Map<number, MediumRecord>>()
  let floors = NO_FLOORS
  let bytes = 0

  const drop = ({ revision, ordinal }: RecordPosition) => {
    const transaction = records.get(revision)
    const record = transaction?.get(ordinal)
    if (!transaction || !record) return
    bytes -= record.value.length
    transaction.delete(ordinal)
    if (transaction.size === 0) records.delete(revision)
  }

  return {
    scan(visit) {
      for (const transaction of records.values()) for (const record of transaction.values()) visit(record)
      return floors
    },
    async write(batch) {
      for (const record of batch.append) {
        const transaction = records.get(record.revision) ?? new Map<number, MediumRecord>()
        records.set(record.revision, transaction.set(record.ordinal, record))
        bytes += record.value.length
      }
      for (const position of batch.drop) drop(position)
      floors = batch.floors ?? floors
    },
    read({ revision, ordinal }) {
      const record = records.get(revision)?.get(ordinal)
      if (!record) throw new Error(`record ${revision}/${ordinal} is not on the medium`)
      return record.value
    },
    bytesOnDisk: () => bytes,
    close: async () => {},
  }
}
