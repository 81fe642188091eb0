// Deletes the capacity objects of per-node producers that no longer run: those of nodes whose CSINode has not listed the
// driver for a configured time. The time starts when this process first observes that the driver is missing, and starts
// again after a restart, so that no object is deleted too early.
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
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL, managedBy, parseManagedBy } from './managed-by.ts'
import { createServerPause } from './server-pause.ts'
import { waitUntilServed } from './wait-until-served.ts'
import { deleteObject, type WriteContext } from './write-object.ts'

export interface CapacityCleanerDeps extends ControllerDeps {
  /** Names of the drivers to clean up. Default: all drivers. */
  readonly drivers?: readonly string[]
  /** Namespace of the objects. Default: all namespaces. */
  readonly namespace?: string
  /** Time for which the driver must be missing on a node before its objects are deleted. Default 10 min. */
  readonly missingForMs?: number
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

export interface CapacityCleaner {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const QUEUE_NAME = 'csistoragecapacity-cleaner'
const MISSING_FOR_MS = 600_000
const BY_PRODUCER = 'capacity: managed by'
const LIST_PAGE_SIZE = 500

export function createCapacityCleaner(deps: CapacityCleanerDeps): CapacityCleaner {
  const {
    client,
    caches,
    clock,
    random,
    log,
    metrics,
    drivers,
    namespace,
    missingForMs = MISSING_FOR_MS,
    election,
  } = deps
  const observer = metrics ? { observer: metrics.queueObserver(QUEUE_NAME) } : {}
  const queue = createWorkQueue({ name: QUEUE_NAME, clock, random, log, workers: 1, ...observer })
  metrics?.queues.add(queue)

  async function run(signal: AbortSignal): Promise<void> {
    if (!(await waitUntilServed(capacityKind, { client, clock, random, log }, signal))) return
    const labelSelector = drivers ? `${DRIVER_NAME_LABEL} in (${drivers.join(',')})` : undefined
    const objects = caches.acquire(capacityKind, {
      ...(namespace ? { namespace } : {}),
      ...(labelSelector ? { labelSelector } : {}),
    })
    const csiNodes = caches.acquire(csiNodeKind)
    const stops: (() => void)[] = []
    try {
      objects.cache.addIndex(BY_PRODUCER, producersOf)
      const presentProducers = createPresentProducers(csiNodes.cache, queue.add)
      stops.push(presentProducers.stop)
      const enqueue = (object: Readonly<CSIStorageCapacity>) => producersOf(object).forEach(queue.add)
      stops.push(objects.cache.subscribe({ added: enqueue, updated: enqueue }))
      const syncResults = await Promise.all([objects.cache.whenSynced(signal), csiNodes.cache.whenSynced(signal)])
      if (!syncResults.every(Boolean)) return
      const pause = createServerPause({ clock, random, log })
      const writeContext: WriteContext = {
        client,
        pause,
        publishedObjects: { addWrittenObject() {} }, // the cleaner only deletes
        ...(election ? { election } : {}),
      }
      /** Monotonic time by producer. Bounded by the number of producers that have objects. */
      const missingSinceMs = new Map<string, number>()
      await queue.run(async (producer, cleanSignal) => {
        await pause.whenOver(cleanSignal)
        return cleanProducer(
          producer,
          { writeContext, objects: objects.cache, presentProducers, missingSinceMs },
          cleanSignal,
        )
      }, signal)
    } finally {
      for (const stop of stops) stop()
      await Promise.all([objects.release(), csiNodes.release()])
    }
  }

  interface CleanContext {
    readonly writeContext: WriteContext
    readonly objects: Cache<CSIStorageCapacity>
    readonly presentProducers: Pick<PresentProducers, 'has'>
    readonly missingSinceMs: Map<string, number>
  }

  async function cleanProducer(producer: ProducerKey, context: CleanContext, signal: AbortSignal): Promise<Outcome> {
    const { writeContext, objects, presentProducers, missingSinceMs } = context
    const producedObjects = objects.byIndex(BY_PRODUCER, producer)
    if (producedObjects.length === 0 || presentProducers.has(producer)) {
      missingSinceMs.delete(producer)
      return done
    }
    const nowMs = clock.monotonicMs()
    const sinceMs = missingSinceMs.get(producer) ?? nowMs
    missingSinceMs.set(producer, sinceMs)
    const remainingMs = sinceMs + missingForMs - nowMs
    const { driver, label } = parseProducerKey(producer)
    if (remainingMs > 0) return retryAfter(remainingMs, `the driver ${driver} is missing on the node of ${label}`)

    if (await hasDriverReturned(client, producer, signal)) {
      missingSinceMs.delete(producer)
      return retryAfter(missingForMs, `the API server lists the driver ${driver} on the node of ${label}`)
    }
    for (const object of producedObjects) {
      const outcome = await deleteObject(object, writeContext, signal)
      if (outcome.is !== 'done') return outcome
    }
    missingSinceMs.delete(producer) // the time starts again if the objects are recreated
    log.info(
      { driver, producer: label, objects: producedObjects.length },
      'deleted capacity objects of a node without the driver',
    )
    return done
  }

  return { queues: [queue], run }
}

/** Driver and managed-by label, for example `hostpath.csi.k8s.io external-provisioner-n1`. */
type ProducerKey = string

const keyOfProducer = (driver: string, label: string): ProducerKey => `${driver} ${label}`

function parseProducerKey(producer: ProducerKey): { readonly driver: string; readonly label: string } {
  const separator = producer.indexOf(' ') // neither part contains a space
  return { driver: producer.slice(0, separator), label: producer.slice(separator + 1) }
}

/** Returns the per-node producer of the object; none for a cluster-wide producer, which is not bound to a node. */
function producersOf({ metadata }: Readonly<CSIStorageCapacity>): ProducerKey[] {
  const { [DRIVER_NAME_LABEL]: driver, [MANAGED_BY_LABEL]: label = '' } = metadata.labels ?? {}
  return driver && parseManagedBy(label) ? [keyOfProducer(driver, label)] : []
}

interface PresentProducers {
  has(producer: ProducerKey): boolean
  stop(): void
}

/** Tracks the producers of all nodes whose CSINode lists the driver. */
function createPresentProducers(csiNodes: Cache<CSINode>, onChange: (producer: ProducerKey) => void): PresentProducers {
  const producers = new Set<ProducerKey>()
  const setPresent = (producer: ProducerKey, isPresent: boolean) => {
    if (producers.has(producer) === isPresent) return
    if (isPresent) producers.add(producer)
    else producers.delete(producer)
    onChange(producer)
  }
  const update = (node: Readonly<CSINode>, previous?: Readonly<CSINode>) => {
    const currentProducers = producersOn(node)
    for (const producer of previous ? producersOn(previous) : []) {
      if (!currentProducers.includes(producer)) setPresent(producer, false)
    }
    for (const producer of currentProducers) setPresent(producer, true)
  }
  const stop = csiNodes.subscribe({
    added: (node) => update(node),
    updated: update,
    deleted: (node) => producersOn(node).forEach((producer) => void setPresent(producer, false)),
  })
  return { has: (producer) => producers.has(producer), stop }
}

const producersOn = ({ metadata, spec }: Readonly<CSINode>): ProducerKey[] =>
  spec.drivers.map(({ name }) => keyOfProducer(name, managedBy(metadata.name)))

/** Reads from the server whether a CSINode lists the driver, because the cache may be behind. */
async function hasDriverReturned(client: Client, producer: ProducerKey, signal: AbortSignal): Promise<boolean> {
  const node = parseManagedBy(parseProducerKey(producer).label)
  if (!node) return true
  const csiNode = await findCsiNode(client, node.name, signal)
  if (csiNode && producersOn(csiNode).includes(producer)) return true
  if (!node.mayBeHash) return false
  for (let continueToken: string | undefined; ; ) {
    const page = await client.list(csiNodeKind, { limit: LIST_PAGE_SIZE, continueToken, signal })
    if (page.items.some((candidate) => producersOn(candidate).includes(producer))) return true
    if (!page.continueToken) return false
    continueToken = page.continueToken
  }
}

async function findCsiNode(client: Client, name: string, signal: AbortSignal) {
  try {
    return await client.get(csiNodeKind, { name }, { signal })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
