// Public exports of the store.
export { type EtcdTls, openEtcdStore } from './etcd/index.ts'
export { isDirectoryInUse, requireUnusedDirectory } from './files/directory-lock.ts'
export { copyLmdbStore, STORE_FILE } from './files/lmdb-copy.ts'
export { openLmdbStore } from './lmdb.ts'
export { repairStore } from './lmdb-repair.ts'
export { AppendRejectedError, type Medium, type MediumBatch, type MediumRecord } from './medium.ts'
export { memoryMedium, openMemoryStore } from './memory.ts'
export { entryOfPut } from './put-entry.ts'
export { copyOf, inspectStore, isDamaged, readRecords, type StoreInspection } from './records/inspect-store.ts'
export type { MigrationProgress } from './records/migration.ts'
export { planRepair, type RepairAction, type RepairPlan } from './records/plan-repair.ts'
export type { RecordDamage } from './records/record-inspector.ts'
export type {
  Entry,
  HistoryOptions,
  ListResult,
  Put,
  Revision,
  ScrubStats,
  Store,
  StoreEvent,
  TransactionResult,
  TransactionView,
  Watch,
  Write,
} from './store.ts'
export {
  CompactedError,
  DamagedRecordError,
  FutureRevisionError,
  keyOfWrite,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  WriteRejectedError,
} from './store.ts'
export { UndecryptableError, type ValueTransformer } from './value-transformer.ts'
