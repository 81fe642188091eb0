// The in-memory store, for tests, for simulations and for objects that are not durable. A test can open another store on the
// medium of a closed one.
import { type Floors, type Medium, type MediumRecord, NO_FLOORS } from './medium.ts'
import { openRevisionedStore, type RevisionedStoreOptions } from './revisioned-store.ts'
import type { Revision, Store } from './store.ts'

export interface MemoryStoreOptions extends Omit<RevisionedStoreOptions, 'medium'> {
  /** Default: an empty memoryMedium(). */
  readonly medium?: Medium
}

export function openMemoryStore({ medium = memoryMedium(), ...options }: MemoryStoreOptions): Promise<Store> {
  return openRevisionedStore({ medium, ...options })
}

/** Creates an empty medium. The first write has the revision after `revision`. */
export function memoryMedium(revision: Revision = 0): Medium {
  const records = new Map<Revision, MediumRecord>()
  let floors: Floors = { ...NO_FLOORS, ordinary: revision }
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
    read: (revision) => records.get(revision)?.value,
    bytesOnDisk: () => bytes,
    close: async () => {},
  }
}
