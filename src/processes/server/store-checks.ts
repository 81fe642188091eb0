// Adds the state of the store to the health of the server: whether it can write, and whether records are damaged.
import { describeKey, type Health, type HealthReader } from '../../apiserver/index.ts'
import type { DamagedRecordError, Store } from '../../store/index.ts'

/** Damaged records that the check names to clients with credentials. It counts all of them for everybody. */
const NAMED_MAX = 3

/** Registers the checks that the store supports: `store` (or `etcd`) and `store-records`. */
export function addStoreChecks(health: Health, store: Store, { isShared }: { readonly isShared: boolean }): void {
  if (store.problem) health.addCheck(isShared ? 'etcd' : 'store', () => store.problem!())
  if (!store.damagedRecords) return
  health.addCheck('store-records', async (reader) => describeDamage(store.damagedRecords!(), reader))
}

function describeDamage(damaged: readonly DamagedRecordError[], { isAuthenticated }: HealthReader): string | undefined {
  if (damaged.length === 0) return undefined
  const records = damaged.length === 1 ? '1 record is damaged' : `${damaged.length} records are damaged`
  if (!isAuthenticated) return `${records}; clients with credentials see which`
  const names = damaged.slice(0, NAMED_MAX).map(({ key, revision }) => `${describeKey(key)} at revision ${revision}`)
  const rest = damaged.length > NAMED_MAX ? `, and ${damaged.length - NAMED_MAX} more` : ''
  return `${records}: ${names.join(', ')}${rest}; run "stowage store check"`
}
