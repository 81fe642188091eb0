// Reconciles a lost node: reads the facts, plans (plan-lost-node.ts), writes taints and conditions, and removes the node's own
// objects. The fence is written before any condition. Every write of the node has its resourceVersion as a precondition: if
// the node reports in between, the write fails and the node is planned again.
import type { Kind, Stored } from '../../../api/kind.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { isFenced } from '../../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { find, type ObjectRef } from '../../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../../runtime/index.ts'
import { readyConditionOf } from '../conditions.ts'
import { NODE_LEASE_NAMESPACE } from '../context.ts'
import type { LostNodesContext } from './context.ts'
import { phaseEvent } from './events.ts'
import { findPendingClaims, releaseClaim } from './pending-claims.ts'
import { type LostNodePlan, phaseOf, planLostNode } from './plan-lost-node.ts'
import { findOwnCapacities, msUntilSilent, readFacts } from './read-facts.ts'

export async function reconcileLostNode(name: string, context: LostNodesContext): Promise<Outcome> {
  const cachedNode = context.nodes.get(name)
  if (!cachedNode) return done
  try {
    return await advance(cachedNode, context)
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the node changed during the reconcile')
    throw error
  }
}

async function advance(cachedNode: Readonly<Stored<Node>>, context: LostNodesContext): Promise<Outcome> {
  const { client, nodes, nodeEvents } = context
  let plan = planFor(cachedNode, context)
  let node = cachedNode
  if (plan.removesOwnObjects || plan.taints) {
    // The cache may lag behind a node that reports again.
    const currentNode = await find(client, nodeKind, { name: cachedNode.metadata.name })
    if (!currentNode) return done
    node = currentNode
    plan = planFor(node, context)
  }
  const oldPhase = phaseOf(node)
  const { name } = node.metadata
  if (plan.taints) {
    const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints: plan.taints } }
    node = await client.patch(nodeKind, { name }, { type: 'merge', body })
    nodes.applyWriteResult(node)
  }
  if (plan.conditions.length > 0) {
    const body = {
      metadata: { resourceVersion: node.metadata.resourceVersion },
      status: { conditions: plan.conditions },
    }
    node = await client.patch(nodeKind, { name }, { type: 'strategic', body }, { subresource: 'status' })
    nodes.applyWriteResult(node)
  }
  // reconcile-node.ts records NodeNotReady and NodeReady for these changes.
  const isAnnounced = [oldPhase, plan.phase].every((phase) => phase === 'InService' || phase === 'Unreachable')
  if (oldPhase !== plan.phase && !isAnnounced) nodeEvents.record(nodeKind, node, phaseEvent(name, oldPhase, plan))
  if (plan.removesOwnObjects) await removeOwnObjects(node, context)
  if (isFenced(node) && readyConditionOf(node)?.status === 'Unknown' && msUntilSilent(name, context) > 0)
    return retryAfter(msUntilSilent(name, context), 'waiting until the heartbeats of the fenced node are missing')
  return outcomeOf(plan)
}

const planFor = (node: Readonly<Stored<Node>>, context: LostNodesContext): LostNodePlan =>
  planLostNode(readFacts(node, context), {
    now: timestamp(context.clock.nowMs()),
    fenceId: `fence-${node.metadata.resourceVersion}`,
  })

/**
 * Deletes the lease and the capacity objects, which would attract new pods and volumes to the node or keep its name
 * reserved, and releases the claims that wait for a volume on it. A crash after any of these writes leaves the others to the next
 * reconcile.
 */
async function removeOwnObjects(node: Readonly<Stored<Node>>, context: LostNodesContext): Promise<void> {
  const { name } = node.metadata
  const leaseRef = { namespace: NODE_LEASE_NAMESPACE, name }
  const lease = context.leases.get(leaseRef)
  if (lease) await remove(leaseKind, leaseRef, lease.metadata.uid, context)
  for (const claim of findPendingClaims(name, context.claims)) await releaseClaim(claim, name, context)
  for (const { metadata } of findOwnCapacities(node, context))
    await remove(csiStorageCapacityKind, { namespace: metadata.namespace, name: metadata.name }, metadata.uid, context)
}

async function remove(kind: Kind, ref: ObjectRef, uid: string, { client }: LostNodesContext): Promise<void> {
  try {
    await client.delete(kind, ref, { uid })
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error // a conflict: another object has the name
  }
}

const outcomeOf = ({ phase, message }: LostNodePlan): Outcome =>
  phase === 'InService' || phase === 'Cleaned' ? done : stuck(message)
