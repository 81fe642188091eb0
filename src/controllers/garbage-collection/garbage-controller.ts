// The garbage collector: deletes objects whose owners no longer exist, and performs foreground deletion (dependents
// first) and orphan deletion (dependents stay). It applies the actions that plan-garbage.ts plans from owner-graph.ts.
// An owner of a kind that is not served counts as existing.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { isConflict, isNotFound, isNotServed } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, find, keyOfObject } from '../../client/index.ts'
import {
  backOff,
  type Cache,
  type CacheSet,
  type ClientMetrics,
  createCacheSet,
  createController,
  done,
  type Outcome,
  source,
} from '../../runtime/index.ts'
import { createOwnerGraph, type GraphNode, nodeKey, type OwnerGraph } from './owner-graph.ts'
import { FOREGROUND, type GarbageAction, type OwnerState, planGarbage } from './plan-garbage.ts'

const NAME = 'garbage'

export interface GarbageOptions {
  readonly client: Client
  readonly kinds: readonly Kind[]
  /** Shared with other controllers and stopped by its creator. Default: the controller creates and stops its own. */
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
    metrics,
    sources: graph.caches.map((cache) =>
      source({
        cache,
        keysOf: (object) => affectedKeys(graph, cache, object),
        mayNeedReconcile: isRelevant,
        mayBeDisabled: true,
      }),
    ),
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

/** Whether the object itself may need an action. The deletion of any object enqueues its dependents regardless. */
const isRelevant = ({ metadata }: Readonly<KubeObject>): boolean =>
  metadata.deletionTimestamp !== undefined || (metadata.ownerReferences?.length ?? 0) > 0

/**
 * Returns the keys of the object unless it was deleted, of its dependents, and of its owners, whose deletion may wait for the
 * object. Most deletions, such as those of events, therefore enqueue nothing.
 */
function affectedKeys(
  graph: OwnerGraph,
  { kind, get }: Cache<KubeObject>,
  object: Readonly<Stored<KubeObject>>,
): readonly string[] {
  const { uid, ownerReferences = [], namespace = '' } = object.metadata
  const keys: string[] = []
  if (get(keyOfObject(object))) keys.push(nodeKey(kind, object))
  for (const node of graph.dependentsOf(uid)) keys.push(nodeKey(node.kind, node.object))
  for (const reference of ownerReferences) {
    const ownerKind = graph.kindOf(reference)
    if (!ownerKind) continue
    const ref = { name: reference.name, namespace: ownerKind.namespaced ? namespace : '' }
    keys.push(nodeKey(ownerKind, { metadata: ref }))
  }
  return keys
}

async function reconcileNode(key: string, graph: OwnerGraph, client: Client): Promise<Outcome> {
  const node = graph.find(key)
  if (!node) return done
  const references = node.object.metadata.ownerReferences ?? []
  const owners = await Promise.all(
    references.map(async (reference) => ({ reference, state: await readOwnerState(reference, node, graph, client) })),
  )
  const dependents = graph.dependentsOf(node.object.metadata.uid)
  const situation = { node, owners, dependents, isInCycle: isInCycle(node, graph) }
  return applyGarbage(planGarbage(situation), node, client)
}

/** Reads the owner from the server if the cache, which may lag behind, does not contain it. */
async function readOwnerState(
  reference: OwnerReference,
  node: GraphNode,
  graph: OwnerGraph,
  client: Client,
): Promise<OwnerState> {
  const kind = graph.kindOf(reference)
  if (!kind) return 'unknown'
  const namespace = node.object.metadata.namespace ?? ''
  if (kind.namespaced && !node.kind.namespaced) return 'unknown' // invalid: the owner of a cluster-scoped object must be cluster-scoped
  const ref = { name: reference.name, ...(kind.namespaced ? { namespace } : {}) }
  const cachedOwner = graph.find(nodeKey(kind, { metadata: ref }))?.object
  const owner = cachedOwner?.metadata.uid === reference.uid ? cachedOwner : await findOwner(client, kind, ref)
  if (owner === 'not served') return 'unknown' // it may exist
  if (owner?.metadata.uid !== reference.uid) return 'absent'
  return isInForegroundDeletion(owner) && reference.blockOwnerDeletion ? 'terminating' : 'present'
}

async function findOwner(client: Client, kind: Kind, ref: { name: string; namespace?: string }) {
  try {
    return await find(client, kind, ref)
  } catch (error) {
    if (isNotServed(error)) return 'not served'
    throw error
  }
}

async function applyGarbage(action: GarbageAction, node: GraphNode, client: Client): Promise<Outcome> {
  try {
    switch (action.do) {
      case 'nothing':
        return done
      case 'delete':
        await client.delete(node.kind, refOf(node), { ...preconditionsOf(node), propagation: action.propagation })
        return done
      case 'remove-owners':
        await removeOwners(client, node, action.uids)
        return done
      case 'delete-dependents':
        for (const dependent of action.dependents) {
          await ignoreNotFound(
            client.delete(dependent.kind, refOf(dependent), {
              ...preconditionsOf(dependent),
              propagation: 'Foreground',
            }),
          )
        }
        return done // the deletion of each dependent enqueues this object
      case 'orphan-dependents':
        for (const dependent of action.dependents)
          await ignoreNotFound(removeOwners(client, dependent, [node.object.metadata.uid]))
        return done
      case 'unblock-owners':
        await unblockOwners(client, node)
        return done
      case 'remove-finalizer':
        await removeFinalizer(client, node, action.finalizer)
        return done
    }
  } catch (error) {
    if (isNotFound(error) || isNotServed(error)) return done
    if (isConflict(error)) return backOff(`the object changed during the reconcile: ${(error as Error).message}`)
    throw error
  }
}

const refOf = ({ object: { metadata } }: GraphNode) => ({
  name: metadata.name,
  namespace: metadata.namespace,
})

/** Preconditions that restrict a deletion to the object and version for which it was planned. */
const preconditionsOf = ({ object: { metadata } }: GraphNode) => ({
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
})

function removeOwners(client: Client, node: GraphNode, uids: readonly string[]): Promise<unknown> {
  const { uid, resourceVersion, ownerReferences = [] } = node.object.metadata
  const remainingReferences = ownerReferences.filter((reference) => !uids.includes(reference.uid))
  const body = {
    metadata: { uid, resourceVersion, ownerReferences: remainingReferences.length > 0 ? remainingReferences : null },
  }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

/** Whether owners in foreground deletion form a cycle through the object. */
function isInCycle(start: GraphNode, graph: OwnerGraph): boolean {
  const visitedUids = new Set<string>()
  const pendingNodes = [start]
  for (let node = pendingNodes.pop(); node; node = pendingNodes.pop()) {
    for (const reference of node.object.metadata.ownerReferences ?? []) {
      const kind = graph.kindOf(reference)
      if (!reference.blockOwnerDeletion || !kind) continue
      const { namespace } = node.object.metadata
      const owner = graph.find(
        nodeKey(kind, { metadata: { name: reference.name, ...(kind.namespaced ? { namespace } : {}) } }),
      )
      if (owner?.object.metadata.uid !== reference.uid || !isInForegroundDeletion(owner.object)) continue
      if (reference.uid === start.object.metadata.uid) return true
      if (visitedUids.has(reference.uid)) continue
      visitedUids.add(reference.uid)
      pendingNodes.push(owner)
    }
  }
  return false
}

const isInForegroundDeletion = ({ metadata }: Readonly<KubeObject>): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(FOREGROUND) ?? false)

function unblockOwners(client: Client, node: GraphNode): Promise<unknown> {
  const { uid, resourceVersion, ownerReferences = [] } = node.object.metadata
  const unblockedReferences = ownerReferences.map((reference) => ({ ...reference, blockOwnerDeletion: false }))
  const body = { metadata: { uid, resourceVersion, ownerReferences: unblockedReferences } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

function removeFinalizer(client: Client, node: GraphNode, finalizer: string): Promise<unknown> {
  const { uid, resourceVersion, finalizers = [] } = node.object.metadata
  const remainingFinalizers = finalizers.filter((name) => name !== finalizer)
  const body = {
    metadata: { uid, resourceVersion, finalizers: remainingFinalizers.length > 0 ? remainingFinalizers : null },
  }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

async function ignoreNotFound(request: Promise<unknown>): Promise<void> {
  try {
    await request
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
