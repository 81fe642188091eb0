// Adds store checks to the server's health endpoints: whether the embedded store can write or etcd responds, and whether records
// are damaged.
import { describeKey, type Health, type HealthReader } from '../../apiserver/index.ts'
import type { DamagedRecordError, Store } from '../../store/index.ts'

/** How many damaged records the check names for authenticated clients. Other clients see only the number. */
const NAMED_RECORDS_MAX = 3

/** Registers the checks that the store supports: `store` (or `etcd`) and `store-records`. */
export function addStoreChecks(
  health: Health,
  store: Store,
  { isStoreShared }: { readonly isStoreShared: boolean },
): void {
  if (store.problem) health.addCheck(isStoreShared ? 'etcd' : 'store', () => store.problem!())
  if (!store.damagedRecords) return
  const remedy = isStoreShared ? 'restore etcd from a snapshot' : 'run "stowage store check"'
  health.addCheck('store-records', async (reader) => describeDamage(store.damagedRecords!(), reader, remedy))
}

function describeDamage(
  damagedRecords: readonly DamagedRecordError[],
  { isAuthenticated }: HealthReader,
  remedy: string,
): string | undefined {
  if (damagedRecords.length === 0) return undefined
  const countText = damagedRecords.length === 1 ? '1 record is damaged' : `${damagedRecords.length} records are damaged`
  if (!isAuthenticated) return `${countText}; authenticate to see which`
  const names = damagedRecords
    .slice(0, NAMED_RECORDS_MAX)
    .map(({ key, revision }) => `${describeKey(key)} at revision ${revision}`)
  const moreText =
    damagedRecords.length > NAMED_RECORDS_MAX ? `, and ${damagedRecords.length - NAMED_RECORDS_MAX} more` : ''
  return `${countText}: ${names.join(', ')}${moreText}; ${remedy}`
}
