// Public exports of the etcd store. The gRPC client is imported when a store is opened, so that servers with an embedded
// store do not load it.
import type { Store } from '../store.ts'
import type { EtcdStoreOptions } from './etcd-store.ts'

export type { EtcdTls } from './client.ts'
export type { EtcdStoreOptions } from './etcd-store.ts'

export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const { EtcdStore } = await import('./etcd-store.ts')
  return EtcdStore.open(options)
}
