// The door of the etcd store. gRPC is loaded when a store is opened: who keeps data in files does not pay for it.
import type { Store } from '../store.ts'
import type { EtcdStoreOptions } from './etcd-store.ts'

export type { EtcdTls } from './client.ts'
export type { EtcdStoreOptions } from './etcd-store.ts'

export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const { EtcdStore } = await import('./etcd-store.ts')
  return EtcdStore.open(options)
}
