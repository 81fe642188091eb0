// Removes the capacity objects of nodes whose producer is not there any more to do it: those of a node from whose CSINode
// the driver has been missing for a set time. Needs no driver, only its name.
//
// How long it is missing is counted from when this cleaner first saw it missing: after a restart it is counted anew, so
// that nothing is ever deleted too early.
import { csiNodeKind } from '../../api/kinds/csi-node.ts'
import { ApiError } from '../../api/status-error.ts'
import type { CSINode, CSIStorageCapacity } from '../../api/types/storage.ts'
import {
  type Cache,
  type Client,
  createWorkQueue,
  done,
  type LeaderElection,
  type Outcome,
  retryAfter,
  type WorkQueue,
} from '../../client/index.ts'
import type { ControllerDeps } from '../deps.ts'
import { capacityKind } from './items.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL, managedBy, nodeNamedBy } from './managed-by.ts'
import { createServerPause } from './server-pause.ts'
import { whenServed } from './when-served.ts'
import { deleteObject, type Writing } from './writing.ts'

export interface CapacityCleanerDeps extends ControllerDeps {
  readonly driverName: string
  /** Where the objects are. Absent: in all namespaces. */
  readonly namespace?: string
  /** How long the driver must have been missing on a node. Default 10 min. */
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
  const { client, caches, clock, random, log, metrics, driverName, namespace, goneForMs = GONE_FOR_MS, election } = deps
  const observer = metrics ? { observer: metrics.queueObserver(QUEUE) } : {}
  /** The keys are labels of producers. */
  const queue = createWorkQueue({ name: QUEUE, clock, random, log, workers: 1, ...observer })
  metrics?.queues.add(queue)

  async function run(signal: AbortSignal): Promise<void> {
    if (!(await whenServed(capacityKind, { client, clock, random, log }, signal))) return
    const selection = { ...(namespace ? { namespace } : {}), labelSelector: `${DRIVER_NAME_LABEL}=${driverName}` }
    const objects = caches.acquire(capacityKind, selection)
    const csiNodes = caches.acquire(csiNodeKind)
    const stops: (() => void)[] = []
    try {
      objects.cache.addIndex(BY_PRODUCER, producersOf)
      const present = presentProducers(csiNodes.cache, driverName, queue.add)
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

  async function clean(producer: string, context: CleanContext, signal: AbortSignal): Promise<Outcome> {
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
    if (leftMs > 0) return retryAfter(leftMs, `the driver ${driverName} is missing on the node of ${producer}`)

    if (await isBack(client, producer, driverName, signal)) {
      goneSinceMs.delete(producer)
      return retryAfter(goneForMs, `the driver ${driverName} is back on the node of ${producer}, says the server`)
    }
    for (const object of orphans) {
      const outcome = await deleteObject(object, writing, signal)
      if (outcome.is !== 'done') return outcome
    }
    goneSinceMs.delete(producer) // a producer that makes them again gets the same time again
    log.info({ driver: driverName, producer, objects: orphans.length }, 'deleted capacity objects of a node without it')
    return done
  }

  return { queues: [queue], run }
}

/** Only of single nodes: who keeps the objects of a whole cluster, or made them by hand, is nobody we can miss. */
function producersOf({ metadata }: Readonly<CSIStorageCapacity>): string[] {
  const label = metadata.labels?.[MANAGED_BY_LABEL] ?? ''
  return nodeNamedBy(label) ? [label] : []
}

interface PresentProducers {
  has(producer: string): boolean
  stop(): void
}

/** The producers of nodes that have the driver. */
function presentProducers(
  csiNodes: Cache<CSINode>,
  driverName: string,
  changed: (producer: string) => void,
): PresentProducers {
  const present = new Set<string>()
  const put = (node: Readonly<CSINode>) => set(node, runs(node, driverName))
  const set = ({ metadata: { name = '' } }: Readonly<CSINode>, isPresent: boolean) => {
    const producer = managedBy(name)
    if (present.has(producer) === isPresent) return
    if (isPresent) present.add(producer)
    else present.delete(producer)
    changed(producer)
  }
  const stop = csiNodes.subscribe({ added: put, updated: put, deleted: (node) => set(node, false) })
  return { has: (producer) => present.has(producer), stop }
}

const runs = ({ spec }: Readonly<CSINode>, driverName: string): boolean =>
  spec.drivers.some(({ name }) => name === driverName)

/** Asks the server itself, before what cannot be undone: our copy may be behind. */
async function isBack(client: Client, producer: string, driverName: string, signal: AbortSignal): Promise<boolean> {
  const node = nodeNamedBy(producer)
  if (!node) return true
  const known = await nodeOrNothing(client, node.name, signal)
  if (known && runs(known, driverName)) return true
  if (!node.mayBeHash) return false
  for (let continueToken: string | undefined; ; ) {
    const page = await client.list(csiNodeKind, { limit: LIVE_LIST_PAGE, continueToken, signal })
    if (page.items.some((one) => runs(one, driverName) && managedBy(one.metadata.name) === producer)) return true
    if (!page.continueToken) return false
    continueToken = page.continueToken
  }
}

async function nodeOrNothing(client: Client, name: string, signal: AbortSignal) {
  try {
    return await client.get(csiNodeKind, { name }, { signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  }
}
