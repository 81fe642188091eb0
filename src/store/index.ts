// The public interface of the store. Everything else in this folder is private to it.
export { type EtcdStoreOptions, type EtcdTls, openEtcdStore } from './etcd/index.ts'
export { type LmdbStoreOptions, openLmdbStore } from './lmdb.ts'
export { copyLmdbStore, STORE_FILE } from './lmdb-copy.ts'
export { AppendRefusedError, type Medium, type MediumBatch, type MediumRecord } from './medium.ts'
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
  Transacted,
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
  WriteRefusedError,
} from './store.ts'
