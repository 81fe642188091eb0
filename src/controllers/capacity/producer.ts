// Publishes the CSIStorageCapacity objects of one driver. Adds an item to the queue when a node, class, volume, claim, snapshot or
// capacity object changes that affects it, and at each poll interval; reconcile-item.ts reconciles it.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, limitRate } from '../../client/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import type { Cache, EventRecorder, LeaderElection, WorkQueue } from '../../runtime/index.ts'
import type { AffectedItems } from './affected-items.ts'
import { createBatches } from './batches.ts'
import { createClassErrors } from './class-errors.ts'
import { createDesiredItems, type DesiredItems } from './desired-items.ts'
import { followObjects } from './follow-objects.ts'
import { followSnapshots } from './follow-snapshots.ts'
import { followVolumes } from './follow-volumes.ts'
import type { ItemKey } from './items.ts'
import { createLastReports } from './last-reports.ts'
import type { CapacityMetrics } from './metrics.ts'
import type { CapacityMode, CapacitySettings } from './options.ts'
import type { ObjectTemplate } from './plan-object.ts'
import { createPublishedObjects } from './published-objects.ts'
import { type ItemContext, reconcileItem } from './reconcile-item.ts'
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
  readonly template: ObjectTemplate
  readonly queue: WorkQueue
  readonly segments: Segments
  // All caches are synced.
  readonly objects: Cache<CSIStorageCapacity>
  readonly classes: Cache<StorageClass>
  readonly volumes: Cache<PersistentVolume>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly capacityMetrics?: CapacityMetrics
  readonly events?: Pick<EventRecorder, 'record'>
  readonly confirmOwner?: ItemContext['confirmOwner']
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

/** Settles after the signal has fired and the last reconcile has finished. */
export async function produceObjects(deps: ProducerDeps, signal: AbortSignal): Promise<void> {
  const { client, clock, random, log, driver, mode, settings, template, queue, segments, election } = deps
  const { objects, classes, volumes, claims, capacityMetrics } = deps
  const { driverName } = template
  const queueItems = (keys: readonly ItemKey[]) => {
    for (const key of keys) queue.add(key)
  }

  const desiredItems = createDesiredItems({
    driverName,
    classes,
    segments,
    immediateBinding: settings.immediateBinding,
    onChange: queueItems,
  })
  const publishedObjects = createPublishedObjects(objects)
  const reports = createLastReports()
  const batches = createBatches({
    clock,
    quietMs: settings.batchQuietMs,
    maxDelayMs: settings.batchMaxMs,
    flush: (items) => queueItems(keysOf(items, desiredItems)),
  })
  const onChange = (items: AffectedItems) => {
    if (isAnyDesired(items, desiredItems, segments)) batches.add(items)
  }
  const unfollowVolumes = followVolumes({ driverName, volumes, claims, segments, desiredItems, onChange })
  const unfollowObjects = followObjects({
    objects,
    desiredItems,
    publishedObjects,
    reports,
    template,
    onChange: queue.add,
  })
  const observedProducer = {
    driverName,
    ...(mode.is === 'local' ? { node: mode.node } : {}),
    counts: () => ({
      goal: desiredItems.size - reports.omittedCount,
      ...publishedObjects.count((key) => desiredItems.get(key) !== undefined),
    }),
  }
  capacityMetrics?.producers.add(observedProducer)
  const classErrors = createClassErrors({ client, claims, events: deps.events, log })

  const context: ItemContext = {
    client: settings.writeRateLimit ? limitRate(client, settings.writeRateLimit, clock) : client,
    driver,
    timeoutMs: settings.timeoutMs,
    log,
    desiredItems,
    publishedObjects,
    reports,
    classErrors,
    template,
    confirmOwner: deps.confirmOwner,
    pause: createServerPause({ clock, random, log }),
    ...(election ? { election } : {}),
  }
  const reconcile = (key: ItemKey, reconcileSignal: AbortSignal) => {
    // Schedule the next poll at the start of the reconcile, so that polls are spread over time.
    if (desiredItems.get(key)) queue.addAfter(key, settings.pollIntervalMs)
    return reconcileItem(key, context, reconcileSignal)
  }
  try {
    await Promise.all([
      followSnapshots({ driverName, client, volumes, clock, random, onChange }, signal),
      queue.run(reconcile, signal),
    ])
  } finally {
    capacityMetrics?.producers.delete(observedProducer)
    unfollowObjects()
    unfollowVolumes()
    await classErrors.stop()
    batches.stop()
    desiredItems.stop()
  }
}

function keysOf(items: AffectedItems, desiredItems: DesiredItems): ItemKey[] {
  switch (items.is) {
    case 'segment':
      return desiredItems.keysOfSegment(items.id)
    case 'class':
      return desiredItems.keysOfClass(items.name)
    case 'all':
      return desiredItems.allKeys()
  }
}

function isAnyDesired(items: AffectedItems, desiredItems: DesiredItems, segments: Segments): boolean {
  switch (items.is) {
    case 'segment':
      return segments.get(items.id) !== undefined
    case 'class':
      return desiredItems.hasClass(items.name)
    case 'all':
      return true
  }
}
