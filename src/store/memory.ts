// The in-memory store, for tests and simulations. A test can open another store on the medium of a closed one.
import type { Clock } from '../base/clock.ts'
import { type Medium, type MediumRecord, NO_FLOORS } from './medium.ts'
import { openRevisionedStore } from './revisioned-store.ts'
import type { HistoryOptions, Revision, Store } from './store.ts'
import type { ValueTransformer } from './value-transformer.ts'

export interface MemoryStoreOptions {
  readonly clock: Clock
  readonly history?: HistoryOptions
  /** Default: an empty memoryMedium(). */
  readonly medium?: Medium
  /** Default: values are stored as they are. */
  readonly transformer?: ValueTransformer
}

export function openMemoryStore({ medium = memoryMedium(), ...options }: MemoryStoreOptions): Promise<Store> {
  return openRevisionedStore({ medium, ...options })
}

export function memoryMedium(): Medium {
  const records = new Map<Revision, MediumRecord>()
  let floors = NO_FLOORS
  let bytes = 0

  return {
    scan(visit) {
      for (const record of records.values()) visit(record)
      return floors
    },
    async write(batch) {
      for (const record of batch.append) {
        records.set(record.revision, record)
        bytes += record.value.length
      }
      for (const revision of batch.drop) {
        bytes -= records.get(revision)?.value.length ?? 0
        records.delete(revision)
      }
      floors = batch.floors ?? floors
    },
    read(revision) {
      const record = records.get(revision)
      if (!record) throw new Error(`record ${revision} does not exist or was dropped`)
      return record.value
    },
    bytesOnDisk: () => bytes,
    close: async () => {},
  }
}
