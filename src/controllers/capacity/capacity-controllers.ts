// Starts and stops the producer of CSIStorageCapacity objects for one driver (producer.ts). With leader election it is
// created for each term.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createWorkQueue, type LeaderElection, type WorkQueue } from '../../runtime/index.ts'
import { clusterSegments } from './cluster-segments.ts'
import { capacityKind } from './items.ts'
import { managedBy, managedObjects } from './managed-by.ts'
import type { CapacityMetrics } from './metrics.ts'
import { type CapacityMode, type CapacityOptions, settingsOf } from './options.ts'
import { findOwner } from './owner.ts'
import { produce } from './producer.ts'
import { retryUntilSuccess } from './retry-until-success.ts'
import { oneSegment, type Segments, segmentOf } from './segments.ts'
import { whenServed } from './when-served.ts'

export interface CapacityDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly mode: CapacityMode
  readonly options: CapacityOptions
  readonly capacityMetrics?: CapacityMetrics
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

export interface CapacityControllers {
  readonly queues: readonly WorkQueue[]
  /** Settles when the last reconcile has ended. */
  run(signal: AbortSignal): Promise<void>
}

const QUEUE = 'csistoragecapacity'
/** A failing driver fails for every item. Each item has its own backoff, which this limit must not extend to minutes. */
const RETRIES_PER_SECOND = 1_000

export function createCapacityControllers(deps: CapacityDeps): CapacityControllers {
  const { client, caches, clock, random, log, metrics, driver, facts, mode } = deps
  if (!facts.controller.has('GET_CAPACITY')) throw withoutGetCapacity(facts.name)
  const settings = settingsOf(deps.options)
  const { namespace } = settings
  const driverName = facts.name
  const name = settings.isOneOfSeveral ? `${driverName}-${QUEUE}` : QUEUE
  const queue = createWorkQueue({
    name,
    clock,
    random,
    log,
    workers: settings.workers,
    backoff: settings.backoff,
    retriesPerSecond: RETRIES_PER_SECOND,
    ...(metrics ? { observer: metrics.queueObserver(name) } : {}),
  })
  metrics?.queues.add(queue)

  async function run(signal: AbortSignal): Promise<void> {
    if (!(await whenServed(capacityKind, { client, clock, random, log }, signal))) return
    const owner = await ownerOf(signal)
    const local = mode.is === 'local' ? await segmentOfNode(mode, signal) : undefined
    if (signal.aborted) return

    const label = managedBy(mode.is === 'local' ? mode.node : undefined)
    const objects = caches.acquire(capacityKind, { namespace, labelSelector: managedObjects(driverName, label) })
    const classes = caches.acquire(storageClassKind)
    const volumes = caches.acquire(persistentVolumeKind)
    const claims = caches.acquire(persistentVolumeClaimKind)
    const cluster = local ? undefined : { nodes: caches.acquire(nodeKind), csiNodes: caches.acquire(csiNodeKind) }
    const leases = [objects, classes, volumes, claims, ...Object.values(cluster ?? {})]
    let stop = () => {}
    try {
      // While the caches have only some nodes or classes, the objects of the others would be deleted.
      const synced = await Promise.all(leases.map(({ cache }) => cache.whenSynced(signal)))
      if (!synced.every(Boolean)) return
      let segments: Segments
      if (cluster) {
        const found = clusterSegments({ driverName, nodes: cluster.nodes.cache, csiNodes: cluster.csiNodes.cache })
        stop = found.stop
        segments = found
      } else segments = local!
      const producer = {
        ...deps,
        settings,
        queue,
        segments,
        marks: { namespace, driverName, managedBy: label, owner },
        objects: objects.cache,
        classes: classes.cache,
        volumes: volumes.cache,
        claims: claims.cache,
      }
      await produce(producer, signal)
    } finally {
      stop()
      await Promise.all(leases.map((lease) => lease.release()))
    }
  }

  async function ownerOf(signal: AbortSignal): Promise<OwnerReference | undefined> {
    const { owner: search } = settings
    if (!search || search.level < 0) return undefined
    const found = await retryUntilSuccess(() => findOwner(client, { namespace, ...search }, signal), deps, signal)
    if (found) log.info({ kind: found.kind, name: found.name }, 'found the owner of capacity objects')
    return found
  }

  async function segmentOfNode(local: Extract<CapacityMode, { is: 'local' }>, signal: AbortSignal): Promise<Segments> {
    const getTopology = async () => (await driver.node.nodeGetInfo({}, { signal })).accessibleTopology?.segments ?? {}
    const labels = local.segments ?? (await retryUntilSuccess(getTopology, deps, signal)) ?? {}
    if (Object.keys(labels).length === 0 && !signal.aborted) {
      const fields = { driver: driverName, node: local.node }
      log.warn(fields, 'the driver reports no topology for its node: its capacity applies to all nodes')
    }
    return oneSegment(segmentOf(labels), local.node)
  }

  return { queues: [queue], run }
}

const withoutGetCapacity = (driverName: string) =>
  new Error(
    `Cannot publish the capacity of the CSI driver ${driverName}: it does not report the controller capability ` +
      'GET_CAPACITY. Run it without --enable-capacity, and set storageCapacity of its CSIDriver to false.',
  )
