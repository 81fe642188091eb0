// Starts and stops the producer of CSIStorageCapacity objects for one driver (producer.ts). With leader election, each term
// creates a new instance.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { createWorkQueue, type EventRecorder, type LeaderElection, type WorkQueue } from '../../runtime/index.ts'
import { createClusterSegments } from './cluster-segments.ts'
import { capacityKind, type ItemKey, parseItemKey } from './items.ts'
import { managedBy, selectorOf } from './managed-by.ts'
import type { CapacityMetrics } from './metrics.ts'
import { type CapacityMode, type CapacityOptions, settingsOf } from './options.ts'
import { findOwner } from './owner.ts'
import { produceObjects } from './producer.ts'
import { retryUntilSuccess } from './retry-until-success.ts'
import { type Segments, segmentOf, singleSegment } from './segments.ts'
import { waitUntilServed } from './wait-until-served.ts'

export interface CapacityDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly mode: CapacityMode
  readonly options: CapacityOptions
  readonly capacityMetrics?: CapacityMetrics
  /** Records events on the waiting claims of a class for which GetCapacity fails. The caller runs it. */
  readonly events?: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

export interface CapacityControllers {
  readonly queues: readonly WorkQueue[]
  /** Settles after the last running reconcile has finished. */
  run(signal: AbortSignal): Promise<void>
}

const QUEUE_NAME = 'csistoragecapacity'

const classRefOf = (key: ItemKey) => ({
  apiVersion: `${storageClassKind.group}/${storageClassKind.versions[0]}`,
  kind: storageClassKind.kind,
  name: parseItemKey(key).className,
})

/** High, because a failing driver fails for every item, and this limit must not extend the backoff of each item. */
const RETRIES_PER_SECOND = 1_000

/** Returns undefined for a key that only waits for the next poll, because it has no operation in progress. */
const withoutPoll = (state: ReturnType<WorkQueue['stateOf']>): ReturnType<WorkQueue['stateOf']> =>
  state?.is === 'waiting' && state.attempts === 0 ? undefined : state

export function createCapacityControllers(deps: CapacityDeps): CapacityControllers {
  const { client, caches, clock, random, log, metrics, driver, facts, mode } = deps
  if (!facts.controller.has('GET_CAPACITY')) throw getCapacityMissing(facts.name)
  const settings = settingsOf(deps.options)
  const { namespace } = settings
  const driverName = facts.name
  const name = settings.prefixesQueueNames ? `${driverName}-${QUEUE_NAME}` : QUEUE_NAME
  const operations = metrics?.operations?.follow({
    component: 'provisioner',
    queue: name,
    stateOf: (key) => withoutPoll(queue.stateOf(key)),
    subjectOf: (key) => ({ operation: 'ReportCapacity', object: classRefOf(key) }),
  })
  const queue: WorkQueue = createWorkQueue({
    name,
    clock,
    random,
    log,
    workers: settings.workers,
    workerBudget: deps.workerBudget,
    backoff: settings.backoff,
    retriesPerSecond: RETRIES_PER_SECOND,
    ...(metrics ? { observer: metrics.queueObserver(name) } : {}),
    ...(operations ? { onChange: operations.note } : {}),
  })
  metrics?.queues.add(queue)

  async function run(signal: AbortSignal): Promise<void> {
    if (!(await waitUntilServed(capacityKind, { client, clock, random, log }, signal))) return
    const owner = await findObjectOwner(signal)
    const nodeSegments = mode.is === 'local' ? await readNodeSegment(mode, signal) : undefined
    if (signal.aborted) return

    const label = managedBy(mode.is === 'local' ? mode.node : undefined)
    const objects = caches.acquire(capacityKind, { namespace, labelSelector: selectorOf(driverName, label) })
    const classes = caches.acquire(storageClassKind)
    const volumes = caches.acquire(persistentVolumeKind)
    const claims = caches.acquire(persistentVolumeClaimKind)
    const cluster = nodeSegments
      ? undefined
      : { nodes: caches.acquire(nodeKind), csiNodes: caches.acquire(csiNodeKind) }
    const leases = [objects, classes, volumes, claims, ...Object.values(cluster ?? {})]
    let stop = () => {}
    try {
      // With incomplete caches, the producer would delete the objects of missing nodes and classes.
      const syncResults = await Promise.all(leases.map(({ cache }) => cache.whenSynced(signal)))
      if (!syncResults.every(Boolean)) return
      let segments: Segments
      if (cluster) {
        const { nodes, csiNodes } = cluster
        const clusterSegments = createClusterSegments({ driverName, nodes: nodes.cache, csiNodes: csiNodes.cache })
        stop = clusterSegments.stop
        segments = clusterSegments
      } else segments = nodeSegments!
      const producer = {
        ...deps,
        settings,
        queue,
        segments,
        template: { namespace, driverName, managedBy: label, owner },
        confirmOwner: owner && ((ownerSignal: AbortSignal) => confirmOwner(owner, ownerSignal)),
        objects: objects.cache,
        classes: classes.cache,
        volumes: volumes.cache,
        claims: claims.cache,
      }
      await produceObjects(producer, signal)
    } finally {
      stop()
      operations?.stop()
      await Promise.all(leases.map((lease) => lease.release()))
    }
  }

  async function findObjectOwner(signal: AbortSignal): Promise<OwnerReference | undefined> {
    const { owner: search } = settings
    if (!search || search.level < 0) return undefined
    const owner = await retryUntilSuccess(() => findOwner(client, { namespace, ...search }, signal), deps, signal)
    if (owner) log.info({ kind: owner.kind, name: owner.name }, 'found the owner of capacity objects')
    return owner
  }

  /** Throws unless the owner that was found at the start is still the owner. */
  async function confirmOwner(owner: OwnerReference, signal: AbortSignal): Promise<void> {
    const { owner: search } = settings
    if (!search) return
    const currentOwner = await findOwner(client, { namespace, ...search }, signal)
    if (currentOwner.uid === owner.uid) return
    throw new Error(
      `${owner.kind} ${namespace}/${owner.name}, the owner of capacity objects, was deleted and replaced. ` +
        'Restart this process, so that it uses the new one.',
    )
  }

  async function readNodeSegment(
    localMode: Extract<CapacityMode, { is: 'local' }>,
    signal: AbortSignal,
  ): Promise<Segments> {
    const getTopology = async () => (await driver.node.nodeGetInfo({}, { signal })).accessibleTopology?.segments ?? {}
    const labels = localMode.segments ?? (await retryUntilSuccess(getTopology, deps, signal)) ?? {}
    if (Object.keys(labels).length === 0 && !signal.aborted) {
      const fields = { driver: driverName, node: localMode.node }
      log.warn(fields, 'the driver reports no topology for its node: its capacity applies to all nodes')
    }
    return singleSegment(segmentOf(labels), localMode.node)
  }

  return { queues: [queue], run }
}

const getCapacityMissing = (driverName: string) =>
  new Error(
    `Cannot publish the capacity of the CSI driver ${driverName}: the driver does not report the controller capability ` +
      'GET_CAPACITY. Run its provisioner without --enable-capacity, and set storageCapacity to false in its CSIDriver.',
  )
