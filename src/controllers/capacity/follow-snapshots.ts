// Reports the affected items when a snapshot of the driver is created, changed or deleted, if the server serves snapshots.
// Watches VolumeSnapshotContents, because they contain the driver's name.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { Backoff } from '../../runtime/backoff.ts'
import { type Cache, createCache } from '../../runtime/index.ts'
import { type VolumeSnapshotContent, volumeSnapshotContentKind } from '../provisioning/csi/snapshot-kinds.ts'
import { type AffectedItems, ALL_ITEMS, affectedItemsOf } from './affected-items.ts'
import { waitUntilServed } from './wait-until-served.ts'

export interface FollowSnapshotsOptions {
  readonly driverName: string
  readonly client: Client
  readonly volumes: Cache<PersistentVolume>
  readonly clock: Clock
  readonly random: Random
  readonly onChange: (items: AffectedItems) => void
}

type Content = Readonly<VolumeSnapshotContent> & {
  readonly spec?: { readonly source?: { readonly volumeHandle?: string } }
  readonly status?: { readonly readyToUse?: boolean; readonly restoreSize?: number }
}

/** Long intervals, because many clusters never serve snapshots and a producer may run on each node. */
const RETRY: Backoff = { baseMs: 60_000, maxMs: 600_000 }
const BY_HANDLE = 'capacity: volume handle'

/** Settles after the signal has fired. */
export async function followSnapshots(options: FollowSnapshotsOptions, signal: AbortSignal): Promise<void> {
  const { driverName, client, volumes, clock, random, onChange } = options
  volumes.addIndex(BY_HANDLE, handlesOf)
  // Not logged, because the role may not allow watching snapshots. Polling then finds the changes.
  const deps = { client, clock, random, log: silentLog }
  if (!(await waitUntilServed(volumeSnapshotContentKind, deps, signal, RETRY))) return
  const contents = createCache<VolumeSnapshotContent>({ client, kind: volumeSnapshotContentKind, clock, random })

  function reportContent(content: Content): void {
    if (!contents.isSynced || content.spec?.driver !== driverName) return
    const [volume] = volumes.byIndex(BY_HANDLE, `${driverName} ${content.spec.source?.volumeHandle}`)
    for (const items of volume ? affectedItemsOf(volume) : [ALL_ITEMS]) onChange(items)
  }

  const stop = contents.subscribe({
    added: reportContent,
    updated: (next, old) => {
      if (stateOf(next) !== stateOf(old)) reportContent(next)
    },
    deleted: reportContent,
  })
  await contents.run(signal)
  stop()
}

const stateOf = ({ status }: Content): string =>
  JSON.stringify([status?.snapshotHandle, status?.readyToUse, status?.restoreSize])

const handlesOf = ({ spec }: Readonly<PersistentVolume>): string[] =>
  spec?.csi ? [`${spec.csi.driver} ${spec.csi.volumeHandle}`] : []
