// Public exports of the store.
export { type EtcdStoreOptions, type EtcdTls, openEtcdStore } from './etcd/index.ts'
export { type LmdbStoreOptions, openLmdbStore } from './lmdb.ts'
export { copyLmdbStore, STORE_FILE } from './lmdb-copy.ts'
export { AppendRejectedError, type Medium, type MediumBatch, type MediumRecord } from './medium.ts'
export { type MemoryStoreOptions, memoryMedium, openMemoryStore } from './memory.ts'
export { entryOfPut } from './put-entry.ts'
export type {
  Decide,
  Entry,
  HistoryOptions,
  ListOptions,
  ListResult,
  Put,
  Revision,
  Store,
  StoreEvent,
  StoreStats,
  TransactionResult,
  TransactionView,
  Watch,
  WatchOptions,
  Write,
} from './store.ts'
export {
  CompactedError,
  FutureRevisionError,
  keyOfWrite,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  WriteRejectedError,
} from './store.ts'
