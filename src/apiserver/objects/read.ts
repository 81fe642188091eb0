// What get, list and watch share: waiting for a resourceVersion that this server has not reached yet.
import { resourceVersionTooLarge } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Store } from '../../store/index.ts'
import type { StoredObjects } from './stored-object.ts'

export interface ReadDeps {
  readonly store: Store
  readonly clock: Clock
  readonly objects: StoredObjects
}

const FUTURE_WAIT_MS = 3_000
const POLL_INTERVAL_MS = 50

/** A revision written through another server may arrive shortly. After three seconds the request fails with 504. */
export async function waitForRevision(
  { store, clock }: Pick<ReadDeps, 'store' | 'clock'>,
  atLeast: number,
): Promise<void> {
  for (let waitedMs = 0; store.revision < atLeast; waitedMs += POLL_INTERVAL_MS) {
    if (waitedMs >= FUTURE_WAIT_MS) throw resourceVersionTooLarge(atLeast, store.revision)
    await clock.sleep(POLL_INTERVAL_MS)
  }
}
