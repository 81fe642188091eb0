// Keeps the capacity objects of one driver up to date: desired items (desired-items.ts), existing objects (published.ts), and
// a queue of items triggered by nodes, classes, volumes, snapshots, the objects themselves, and a poll interval.
// Read: desired-items.ts, published.ts, report.ts. Plan: plan-object.ts. Apply: reconcile-item.ts, writing.ts.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, rateLimited } from '../../client/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import type { Cache, LeaderElection, WorkQueue } from '../../runtime/index.ts'
import type { AffectedItems } from './affected-items.ts'
import { createBatches } from './batches.ts'
import { type DesiredItems, desiredItems } from './desired-items.ts'
import { followObjects } from './follow-objects.ts'
import { followSnapshots } from './follow-snapshots.ts'
import { followVolumes } from './follow-volumes.ts'
import type { ItemKey } from './items.ts'
import type { CapacityMetrics } from './metrics.ts'
import type { CapacityMode, CapacitySettings } from './options.ts'
import type { Marks } from './plan-object.ts'
import { publishedObjects } from './published.ts'
import { type ItemContext, reconcileItem } from './reconcile-item.ts'
import { createReports } from './reports.ts'
import type { Segments } from './segments.ts'
import { createServerPause } from './server-pause.ts'

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

  const desired = desiredItems({
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
    flush: (affected) => addAll(keysOf(affected, desired)),
  })
  const changed = (affected: AffectedItems) => {
    if (isAnyDesired(affected, desired, segments)) batches.add(affected)
  }
  const unfollowVolumes = followVolumes({ driverName, volumes, claims, segments, desired, changed })
  const unfollowObjects = followObjects({ objects, desired, published, reports, marks, changed: queue.add })
  const counted = {
    driverName,
    ...(mode.is === 'local' ? { node: mode.node } : {}),
    counts: () => ({
      goal: desired.size - reports.leftOut,
      ...published.count((key) => desired.get(key) !== undefined),
    }),
  }
  capacityMetrics?.producers.add(counted)

  const context: ItemContext = {
    client: settings.writes ? rateLimited(client, settings.writes, clock) : client,
    driver,
    timeoutMs: settings.timeoutMs,
    log,
    desired,
    published,
    reports,
    marks,
    pause: createServerPause({ clock, random, log }),
    ...(election ? { election } : {}),
  }
  const reconcile = (key: ItemKey, until: AbortSignal) => {
    // The next poll is scheduled from here regardless of the result, so that polls spread over time.
    if (desired.get(key)) queue.addAfter(key, settings.pollIntervalMs)
    return reconcileItem(key, context, until)
  }
  try {
    await Promise.all([
      followSnapshots({ driverName, client, volumes, clock, random, changed }, signal),
      queue.run(reconcile, signal),
    ])
  } finally {
    capacityMetrics?.producers.delete(counted)
    unfollowObjects()
    unfollowVolumes()
    batches.stop()
    desired.stop()
  }
}

function keysOf(affected: AffectedItems, desired: DesiredItems): ItemKey[] {
  switch (affected.is) {
    case 'segment':
      return desired.ofSegment(affected.id)
    case 'class':
      return desired.ofClass(affected.name)
    case 'all':
      return desired.all()
  }
}

function isAnyDesired(affected: AffectedItems, desired: DesiredItems, segments: Segments): boolean {
  switch (affected.is) {
    case 'segment':
      return segments.get(affected.id) !== undefined
    case 'class':
      return desired.hasClass(affected.name)
    case 'all':
      return true
  }
}
