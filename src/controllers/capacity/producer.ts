// Keeps the capacity objects of one driver up to date: desired items (wanted-items.ts), existing objects (published.ts), and
// a queue of items triggered by nodes, classes, volumes, snapshots, the objects themselves, and a poll interval.
// Read: wanted-items.ts, published.ts, report.ts. Plan: plan-object.ts. Apply: reconcile-item.ts, writing.ts.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, rateLimited } from '../../client/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import type { Cache, LeaderElection, WorkQueue } from '../../runtime/index.ts'
import { createBatches } from './batches.ts'
import { followObjects } from './follow-objects.ts'
import { followSnapshots } from './follow-snapshots.ts'
import { followVolumes } from './follow-volumes.ts'
import type { ItemKey } from './items.ts'
import type { CapacityMetrics } from './metrics.ts'
import type { CapacityMode, CapacitySettings } from './options.ts'
import type { Place } from './places.ts'
import type { Marks } from './plan-object.ts'
import { publishedObjects } from './published.ts'
import { type ItemContext, reconcileItem } from './reconcile-item.ts'
import { createReports } from './reports.ts'
import type { Segments } from './segments.ts'
import { createServerPause } from './server-pause.ts'
import { type WantedItems, wantedItems } from './wanted-items.ts'

export interface ProducerDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly driver: CsiDriver
  readonly mode: CapacityMode
  readonly settings: CapacitySettings
  readonly marks: Marks
  readonly queue: WorkQueue
  readonly segments: Segments
  /** All of them synced. */
  readonly objects: Cache<CSIStorageCapacity>
  readonly classes: Cache<StorageClass>
  readonly volumes: Cache<PersistentVolume>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly capacityMetrics?: CapacityMetrics
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

/** Settles once the signal has fired and the last reconcile has ended. */
export async function produce(deps: ProducerDeps, signal: AbortSignal): Promise<void> {
  const { client, clock, random, log, driver, mode, settings, marks, queue, segments, election } = deps
  const { objects, classes, volumes, claims, capacityMetrics } = deps
  const { driverName } = marks
  const addAll = (keys: readonly ItemKey[]) => {
    for (const key of keys) queue.add(key)
  }

  const wanted = wantedItems({
    driverName,
    classes,
    segments,
    immediateBinding: settings.immediateBinding,
    changed: addAll,
  })
  const published = publishedObjects(objects)
  const reports = createReports()
  const batches = createBatches({
    clock,
    quietMs: settings.batchQuietMs,
    atMostMs: settings.batchMs,
    tell: (place) => addAll(keysAt(place, wanted)),
  })
  const touched = (place: Place) => {
    if (isThere(place, wanted, segments)) batches.add(place)
  }
  const unfollowVolumes = followVolumes({ driverName, volumes, claims, segments, wanted, touched })
  const unfollowObjects = followObjects({ objects, wanted, published, reports, marks, changed: queue.add })
  const counted = {
    driverName,
    ...(mode.is === 'local' ? { node: mode.node } : {}),
    counts: () => ({
      goal: wanted.size - reports.leftOut,
      ...published.count((key) => wanted.get(key) !== undefined),
    }),
  }
  capacityMetrics?.producers.add(counted)

  const context: ItemContext = {
    client: settings.writes ? rateLimited(client, settings.writes, clock) : client,
    driver,
    timeoutMs: settings.timeoutMs,
    log,
    wanted,
    published,
    reports,
    marks,
    pause: createServerPause({ clock, random, log }),
    ...(election ? { election } : {}),
  }
  const reconcile = (key: ItemKey, until: AbortSignal) => {
    // The next poll is scheduled from here whatever the result, so that polls spread over time.
    if (wanted.get(key)) queue.addAfter(key, settings.pollIntervalMs)
    return reconcileItem(key, context, until)
  }
  try {
    await Promise.all([
      followSnapshots({ driverName, client, volumes, clock, random, touched }, signal),
      queue.run(reconcile, signal),
    ])
  } finally {
    capacityMetrics?.producers.delete(counted)
    unfollowObjects()
    unfollowVolumes()
    batches.stop()
    wanted.stop()
  }
}

function keysAt(place: Place, wanted: WantedItems): ItemKey[] {
  switch (place.is) {
    case 'segment':
      return wanted.ofSegment(place.id)
    case 'class':
      return wanted.ofClass(place.name)
    case 'all':
      return wanted.all()
  }
}

function isThere(place: Place, wanted: WantedItems, segments: Segments): boolean {
  switch (place.is) {
    case 'segment':
      return segments.get(place.id) !== undefined
    case 'class':
      return wanted.hasClass(place.name)
    case 'all':
      return true
  }
}
