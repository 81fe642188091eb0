// Prepares reads: finds the store of a resource, and waits for a resourceVersion that this server has not reached yet.
import { resourceVersionTooLarge } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Store } from '../../store/index.ts'
import type { Resource } from '../resources.ts'
import type { StoredObjects } from './stored-object.ts'

export interface ReadDeps {
  readonly store: Store
  /** The operations, the only volatile kind. Absent if the server serves none. */
  readonly operations?: { readonly store: Store }
  readonly clock: Clock
  readonly objects: StoredObjects
}

/** Returns the store that has the objects of the resource. */
export const storeOf = ({ store, operations }: Pick<ReadDeps, 'store' | 'operations'>, { kind }: Resource): Store =>
  (kind.isVolatile && operations?.store) || store

const REVISION_WAIT_MS_MAX = 3_000
const POLL_INTERVAL_MS = 50

/** Waits for a revision that another server may have written. Throws 504 after three seconds. */
export async function waitForRevision(
  { store, clock }: Pick<ReadDeps, 'store' | 'clock'>,
  minimumRevision: number,
): Promise<void> {
  for (let waitedMs = 0; store.revision < minimumRevision; waitedMs += POLL_INTERVAL_MS) {
    if (waitedMs >= REVISION_WAIT_MS_MAX) throw resourceVersionTooLarge(minimumRevision, store.revision)
    await clock.sleep(POLL_INTERVAL_MS)
  }
}
