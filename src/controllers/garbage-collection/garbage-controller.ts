// The garbage collector: deletes objects whose owners no longer exist, and performs foreground deletion (dependents
// first) and orphan deletion (dependents stay). Reads owner-graph.ts, plans in plan-garbage.ts, applies here.
// An owner of a kind that is not served counts as existing.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { isConflict, isNotFound, isNotServed } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Client, find } from '../../client/index.ts'
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
  /** Shared with other controllers and stopped by its creator. Absent: the controller creates its own. */
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
      keysOf: (object: Readonly<KubeObject>) => affectedKeys(graph, cache.kind, object),
      concerns: isRelevant,
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

/** Other objects need no action; their deletion wakes their dependents. */
const isRelevant = ({ metadata }: Readonly<KubeObject>): boolean =>
  metadata.deletionTimestamp !== undefined || (metadata.ownerReferences?.length ?? 0) > 0

/** A change wakes the object, its dependents, and its owners (which may wait for it). */
function affectedKeys(graph: OwnerGraph, kind: Kind, object: Readonly<KubeObject>): string[] {
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
  if (!node) return done
  const references = node.object.metadata.ownerReferences ?? []
  const owners = await Promise.all(
    references.map(async (reference) => ({ reference, state: await stateOf(reference, node, graph, client) })),
  )
  const dependents = graph.dependentsOf(node.object.metadata.uid)
  const situation = { node, owners, dependents, isInCycle: isInCycle(node, graph) }
  return applyGarbage(planGarbage(situation), node, client)
}

/** Reads the owner from the server if the cache does not have it: the cache may lag behind. */
async function stateOf(reference: OwnerReference, node: Node, graph: OwnerGraph, client: Client): Promise<OwnerState> {
  const kind = graph.kindOf(reference)
  if (!kind) return 'unknown'
  const namespace = node.object.metadata.namespace ?? ''
  if (kind.namespaced && !node.kind.namespaced) return 'unknown' // invalid: the owner of a cluster-scoped object must be cluster-scoped
  const ref = { name: reference.name, ...(kind.namespaced ? { namespace } : {}) }
  const cached = graph.find(nodeKey(kind, { metadata: ref }))?.object
  const owner = cached?.metadata.uid === reference.uid ? cached : await findOwner(client, kind, ref)
  if (owner === 'not served') return 'unknown' // it may exist
  if (owner?.metadata.uid !== reference.uid) return 'absent'
  const isWaiting = owner.metadata.deletionTimestamp && owner.metadata.finalizers?.includes(FOREGROUND)
  return isWaiting && reference.blockOwnerDeletion ? 'leaving' : 'present'
}

async function findOwner(client: Client, kind: Kind, ref: { name: string; namespace?: string }) {
  try {
    return await find(client, kind, ref)
  } catch (error) {
    if (isNotServed(error)) return 'not served'
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
      case 'remove-owners':
        await removeOwners(client, node, action.uids)
        return done
      case 'delete-dependents':
        for (const dependent of action.dependents) {
          await ignoreNotFound(
            client.delete(dependent.kind, refOf(dependent), { ...preconditions(dependent), propagation: 'Foreground' }),
          )
        }
        return done // the deletion of each dependent wakes this object
      case 'orphan-dependents':
        for (const dependent of action.dependents)
          await ignoreNotFound(removeOwners(client, dependent, [node.object.metadata.uid]))
        return done
      case 'unblock':
        await unblock(client, node)
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

const refOf = ({ object: { metadata } }: Node) => ({
  name: metadata.name,
  namespace: metadata.namespace,
})

/** Delete only the object and version that the plan was based on. */
const preconditions = ({ object: { metadata } }: Node) => ({
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
})

function removeOwners(client: Client, node: Node, uids: readonly string[]): Promise<unknown> {
  const { uid, resourceVersion, ownerReferences = [] } = node.object.metadata
  const kept = ownerReferences.filter((reference) => !uids.includes(reference.uid))
  const body = { metadata: { uid, resourceVersion, ownerReferences: kept.length > 0 ? kept : null } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

/** Whether owners in foreground deletion form a cycle through the object. */
function isInCycle(start: Node, graph: OwnerGraph): boolean {
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

function removeFinalizer(client: Client, node: Node, finalizer: string): Promise<unknown> {
  const { uid, resourceVersion, finalizers = [] } = node.object.metadata
  const kept = finalizers.filter((name) => name !== finalizer)
  const body = { metadata: { uid, resourceVersion, finalizers: kept.length > 0 ? kept : null } }
  return client.patch(node.kind, refOf(node), { type: 'merge', body })
}

async function ignoreNotFound(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
