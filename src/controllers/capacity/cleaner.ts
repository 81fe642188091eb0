// Deletes the capacity objects of nodes without a producer: nodes whose CSINode has not listed the driver for a set time.
// Needs only the name of the driver; without a name, all drivers are cleaned.
//
// The time starts when this cleaner first sees the driver missing, and restarts with the process, so that nothing is
// deleted too early.
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  type Cache,
  createWorkQueue,
  done,
  type LeaderElection,
  type Outcome,
  retryAfter,
  type WorkQueue,
} from '../../runtime/index.ts'
import { capacityKind } from './items.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL, managedBy, nodeNamedBy } from './managed-by.ts'
import { createServerPause } from './server-pause.ts'
import { whenServed } from './when-served.ts'
import { deleteObject, type Writing } from './writing.ts'

export interface CapacityCleanerDeps extends ControllerDeps {
  /** Absent: all drivers. */
  readonly drivers?: readonly string[]
  /** Absent: all namespaces. */
  readonly namespace?: string
  /** How long the driver must be missing on a node. Default 10 min. */
  readonly goneForMs?: number
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

export interface CapacityCleaner {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const QUEUE = 'csistoragecapacity-cleaner'
const GONE_FOR_MS = 600_000
const BY_PRODUCER = 'capacity: managed by'
const LIVE_LIST_PAGE = 500

export function createCapacityCleaner(deps: CapacityCleanerDeps): CapacityCleaner {
  const { client, caches, clock, random, log, metrics, drivers, namespace, goneForMs = GONE_FOR_MS, election } = deps
  const observer = metrics ? { observer: metrics.queueObserver(QUEUE) } : {}
  const queue = createWorkQueue({ name: QUEUE, clock, random, log, workers: 1, ...observer })
  metrics?.queues.add(queue)

  async function run(signal: AbortSignal): Promise<void> {
    if (!(await whenServed(capacityKind, { client, clock, random, log }, signal))) return
    const labelSelector = drivers ? `${DRIVER_NAME_LABEL} in (${drivers.join(',')})` : undefined
    const objects = caches.acquire(capacityKind, {
      ...(namespace ? { namespace } : {}),
      ...(labelSelector ? { labelSelector } : {}),
    })
    const csiNodes = caches.acquire(csiNodeKind)
    const stops: (() => void)[] = []
    try {
      objects.cache.addIndex(BY_PRODUCER, producersOf)
      const present = presentProducers(csiNodes.cache, queue.add)
      stops.push(present.stop)
      const wake = (object: Readonly<CSIStorageCapacity>) => producersOf(object).forEach(queue.add)
      stops.push(objects.cache.subscribe({ added: wake, updated: wake }))
      const synced = await Promise.all([objects.cache.whenSynced(signal), csiNodes.cache.whenSynced(signal)])
      if (!synced.every(Boolean)) return
      const pause = createServerPause({ clock, random, log })
      const writing: Writing = { client, pause, published: { wrote() {} }, ...(election ? { election } : {}) }
      /** By the monotonic clock; bounded by the producers that have objects. */
      const goneSinceMs = new Map<string, number>()
      await queue.run(async (producer, until) => {
        await pause.over(until)
        return clean(producer, { writing, objects: objects.cache, present, goneSinceMs }, until)
      }, signal)
    } finally {
      for (const stop of stops) stop()
      await Promise.all([objects.release(), csiNodes.release()])
    }
  }

  interface CleanContext {
    readonly writing: Writing
    readonly objects: Cache<CSIStorageCapacity>
    readonly present: Pick<PresentProducers, 'has'>
    readonly goneSinceMs: Map<string, number>
  }

  async function clean(producer: ProducerKey, context: CleanContext, signal: AbortSignal): Promise<Outcome> {
    const { writing, objects, present, goneSinceMs } = context
    const orphans = objects.byIndex(BY_PRODUCER, producer)
    if (orphans.length === 0 || present.has(producer)) {
      goneSinceMs.delete(producer)
      return done
    }
    const nowMs = clock.monotonicMs()
    const sinceMs = goneSinceMs.get(producer) ?? nowMs
    goneSinceMs.set(producer, sinceMs)
    const leftMs = sinceMs + goneForMs - nowMs
    const { driver, label } = partsOf(producer)
    if (leftMs > 0) return retryAfter(leftMs, `the driver ${driver} is missing on the node of ${label}`)

    if (await isBack(client, producer, signal)) {
      goneSinceMs.delete(producer)
      return retryAfter(goneForMs, `the API server lists the driver ${driver} on the node of ${label}`)
    }
    for (const object of orphans) {
      const outcome = await deleteObject(object, writing, signal)
      if (outcome.is !== 'done') return outcome
    }
    goneSinceMs.delete(producer) // if they are recreated, the time starts again
    log.info(
      { driver, producer: label, objects: orphans.length },
      'deleted capacity objects of a node without the driver',
    )
    return done
  }

  return { queues: [queue], run }
}

/** `hostpath.csi.k8s.io external-provisioner-n1` */
type ProducerKey = string

const keyOfProducer = (driver: string, label: string): ProducerKey => `${driver} ${label}`

function partsOf(producer: ProducerKey): { readonly driver: string; readonly label: string } {
  const at = producer.indexOf(' ') // neither part contains a space
  return { driver: producer.slice(0, at), label: producer.slice(at + 1) }
}

/** Only per-node producers: nodes do not show whether a cluster-wide producer still runs. */
function producersOf({ metadata }: Readonly<CSIStorageCapacity>): ProducerKey[] {
  const { [DRIVER_NAME_LABEL]: driver, [MANAGED_BY_LABEL]: label = '' } = metadata.labels ?? {}
  return driver && nodeNamedBy(label) ? [keyOfProducer(driver, label)] : []
}

interface PresentProducers {
  has(producer: ProducerKey): boolean
  stop(): void
}

/** The producers of nodes that list their driver. */
function presentProducers(csiNodes: Cache<CSINode>, changed: (producer: ProducerKey) => void): PresentProducers {
  const present = new Set<ProducerKey>()
  const set = (producer: ProducerKey, isPresent: boolean) => {
    if (present.has(producer) === isPresent) return
    if (isPresent) present.add(producer)
    else present.delete(producer)
    changed(producer)
  }
  const put = (node: Readonly<CSINode>, before?: Readonly<CSINode>) => {
    const now = producersOn(node)
    for (const producer of before ? producersOn(before) : []) if (!now.includes(producer)) set(producer, false)
    for (const producer of now) set(producer, true)
  }
  const stop = csiNodes.subscribe({
    added: (node) => put(node),
    updated: put,
    deleted: (node) => producersOn(node).forEach((producer) => void set(producer, false)),
  })
  return { has: (producer) => present.has(producer), stop }
}

const producersOn = ({ metadata, spec }: Readonly<CSINode>): ProducerKey[] =>
  spec.drivers.map(({ name }) => keyOfProducer(name, managedBy(metadata.name)))

/** Reads from the server before deleting, because the cache may be behind. */
async function isBack(client: Client, producer: ProducerKey, signal: AbortSignal): Promise<boolean> {
  const node = nodeNamedBy(partsOf(producer).label)
  if (!node) return true
  const known = await findNode(client, node.name, signal)
  if (known && producersOn(known).includes(producer)) return true
  if (!node.mayBeHash) return false
  for (let continueToken: string | undefined; ; ) {
    const page = await client.list(csiNodeKind, { limit: LIVE_LIST_PAGE, continueToken, signal })
    if (page.items.some((one) => producersOn(one).includes(producer))) return true
    if (!page.continueToken) return false
    continueToken = page.continueToken
  }
}

async function findNode(client: Client, name: string, signal: AbortSignal) {
  try {
    return await client.get(csiNodeKind, { name }, { signal })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
