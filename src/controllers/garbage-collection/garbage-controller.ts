// Deletes what belongs to nobody any more, and carries out the two deletions that wait: foreground (dependents first)
// and orphan (dependents stay). Owners of kinds that are not served are left alone, and so is what belongs to them.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { ApiError, isNotServed } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import {
  backOff,
  type CacheSet,
  type ClientMetrics,
  createCacheSet,
  createController,
  done,
  type Outcome,
} from '../../runtime/index.ts'
import { createOwnerGraph, type Node, nodeKey, type OwnerGraph } from './owner-graph.ts'
import { FOREGROUND, type GarbageAction, type OwnerState, planGarbage } from './plan-garbage.ts'

const NAME = 'garbage'

export interface GarbageOptions {
  readonly client: Client
  readonly kinds: readonly Kind[]
  /** Shared with other controllers, and stopped by whoever made it. Absent: it has one of its own. */
  readonly caches?: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
}

export function createGarbageController(options: GarbageOptions) {
  const { client, clock, random, log, metrics } = options
  const caches = options.caches ?? createCacheSet(options)
  const graph = createOwnerGraph(options.kinds, caches)
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    ...(metrics ? { observer: metrics.queueObserver(NAME) } : {}),
    sources: graph.caches.map((cache) => ({
      cache,
      keysOf: (object: Readonly<KubeObject>) => concernedBy(graph, cache.kind, object),
      concerns: belongsOrGoes,
      mayBeOff: true,
    })),
    reconcile: (key) => reconcileNode(key, graph, client),
  })
  metrics?.queues.add(controller.queue)
  return {
    queue: controller.queue,
    async run(signal: AbortSignal): Promise<void> {
      try {
        await controller.run(signal)
      } finally {
        if (!options.caches) await caches.stop()
      }
    },
  }
}

/** Nothing is done about the others; what belongs to them is woken by their end. */
const belongsOrGoes = ({ metadata }: Readonly<KubeObject>): boolean =>
  metadata.deletionTimestamp !== undefined || (metadata.ownerReferences?.length ?? 0) > 0

/** A change concerns the object itself, what belongs to it, and what it belongs to (an owner that waits for it). */
function concernedBy(graph: OwnerGraph, kind: Kind, object: Readonly<KubeObject>): string[] {
  const { uid = '', ownerReferences = [], namespace = '' } = object.metadata
  const owners = ownerReferences.flatMap((reference) => {
    const ownerKind = graph.kindOf(reference)
    return ownerKind
      ? [nodeKey(ownerKind, { metadata: { name: reference.name, namespace: ownerKind.namespaced ? namespace : '' } })]
      : []
  })
  return [nodeKey(kind, object), ...graph.dependentsOf(uid).map((node) => nodeKey(node.kind, node.object)), ...owners]
}

async function reconcileNode(key: string, graph: OwnerGraph, client: Client): Promise<Outcome> {
  const node = graph.find(key)
  if (!node) return done // gone meanwhile
  const references = node.object.metadata.ownerReferences ?? []
  const owners = await Promise.all(
    references.map(async (reference) => ({ reference, state: await stateOf(reference, node, graph, client) })),
  )
  const dependents = graph.dependentsOf(node.object.metadata.uid ?? '')
  const situation = { node, owners, dependents, waitsForItself: isInRing(node, graph) }
  return applyGarbage(planGarbage(situation), node, client)
}

/** The cache may be behind, so only the server itself can say that an owner is gone. */
async function stateOf(reference: OwnerReference, node: Node, graph: OwnerGraph, client: Client): Promise<OwnerState> {
  const kind = graph.kindOf(reference)
  if (!kind) return 'unknown'
  const namespace = node.object.metadata.namespace ?? ''
  if (kind.namespaced && !node.kind.namespaced) return 'unknown' // a cluster's object cannot belong to a namespace's
  const ref = { name: reference.name, ...(kind.namespaced ? { namespace } : {}) }
  const cached = graph.find(nodeKey(kind, { metadata: ref }))?.object
  const owner = cached?.metadata.uid === reference.uid ? cached : await getOrNothing(client, kind, ref)
  if (owner === 'not served') return 'unknown' // it may well be there
  if (owner?.metadata.uid !== reference.uid) return 'absent'
  const isWaiting = owner.metadata.deletionTimestamp && owner.metadata.finalizers?.includes(FOREGROUND)
  return isWaiting && reference.blockOwnerDeletion ? 'leaving' : 'present'
}

async function getOrNothing(client: Client, kind: Kind, ref: { name: string; namespace?: string }) {
  try {
    return await client.get(kind, ref)
  } catch (error) {
    if (isNotServed(error)) return 'not served'
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  }
}

async function applyGarbage(action: GarbageAction, node: Node, client: Client): Promise<Outcome> {
  try {
    switch (action.do) {
      case 'nothing':
        return done
      case 'delete':
        await client.delete(node.kind, refOf(node), { ...preconditions(node), propagation: action.propagation })
        return done
      case 'disown':
        await disown(client, node, action.uids)
        return done
      case 'delete-dependents':
        for (const dependent of action.dependents) {
          await ignoringGone(
            client.delete(dependent.kind, refOf(dependent), { ...preconditions(dependent), propagation: 'Foreground' }),
          )
        }
        return done // each one's end wakes this object again
      case 'orphan-dependents':
        for (const dependent of action.dependents)
          await ignoringGone(disown(client, dependent, [node.object.metadata.uid ?? '']))
        return done
      case 'unblock':
        await unblock(client, node)
        return done
      case 'release':
        await release(client, node, action.finalizer)
        return done
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.code === 404) return done
    if (error.code === 409) return backOff(`it changed meanwhile: ${error.message}`)
    throw error
  }
}

const refOf = ({ object: { metadata } }: Node) => ({
  name: metadata.name ?? '',
  ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
})

/** Only the very object that was judged, in the very state it was judged in. */
const preconditions = ({ object: { metadata } }: Node) => ({
  ...(metadata.uid ? { uid: metadata.uid } : {}),
  ...(metadata.resourceVersion ? { resourceVersion: metadata.resourceVersion } : {}),
})

function disown(client: Client, node: Node, uids: readonly string[]): Promise<unknown> {
  const { uid, resourceVersion, ownerReferences = [] } = node.object.metadata
  const kept = ownerReferences.filter((reference) => !uids.includes(reference.uid))
  const body = { metadata: { uid, resourceVersion, ownerReferences: kept.length > 0 ? kept : null } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

/** Owners that wait for their dependents, followed upwards, lead back to where they started. */
function isInRing(start: Node, graph: OwnerGraph): boolean {
  const seen = new Set<string>()
  const next = [start]
  for (let node = next.pop(); node; node = next.pop()) {
    for (const reference of node.object.metadata.ownerReferences ?? []) {
      const kind = graph.kindOf(reference)
      if (!reference.blockOwnerDeletion || !kind) continue
      const { namespace } = node.object.metadata
      const owner = graph.find(
        nodeKey(kind, { metadata: { name: reference.name, ...(kind.namespaced ? { namespace } : {}) } }),
      )
      if (owner?.object.metadata.uid !== reference.uid || !isWaiting(owner)) continue
      if (reference.uid === start.object.metadata.uid) return true
      if (seen.has(reference.uid)) continue
      seen.add(reference.uid)
      next.push(owner)
    }
  }
  return false
}

const isWaiting = ({ object: { metadata } }: Node): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(FOREGROUND) ?? false)

function unblock(client: Client, node: Node): Promise<unknown> {
  const { uid, resourceVersion, ownerReferences = [] } = node.object.metadata
  const unblocked = ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false }))
  const body = { metadata: { uid, resourceVersion, ownerReferences: unblocked } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

function release(client: Client, node: Node, finalizer: string): Promise<unknown> {
  const { uid, resourceVersion, finalizers = [] } = node.object.metadata
  const kept = finalizers.filter((name) => name !== finalizer)
  const body = { metadata: { uid, resourceVersion, finalizers: kept.length > 0 ? kept : null } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

async function ignoringGone(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 404)) throw error
  }
}
