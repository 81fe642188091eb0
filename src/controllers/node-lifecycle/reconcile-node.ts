// Reconciles the health of one node. If the node has stopped reporting, sets its conditions to Unknown, after a read from the
// server has confirmed it, because the caches may lag behind. Then derives the node's taints from its conditions. Each write
// has the node's resourceVersion as a precondition.
import type { Stored } from '../../api/kind.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { timestamp } from '../../base/timestamps.ts'
import { find } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { isReady, readyConditionOf, unknownConditions, unreachableCondition } from './conditions.ts'
import { NODE_LEASE_NAMESPACE, type NodeLifecycleContext } from './context.ts'
import { nodeRegistered, nodeStatusChanged } from './events.ts'
import { desiredTaints, hasNotReadyTaint } from './taints.ts'

export async function reconcileNode(name: string, context: NodeLifecycleContext): Promise<Outcome> {
  const { nodes, heartbeats, metrics, clock } = context
  const cachedNode = nodes.get(name)
  if (!cachedNode || !heartbeats.isMonitored(name)) return done // no agent reports for this node
  recordRegistration(cachedNode, context)
  const startedMs = clock.monotonicMs()
  try {
    return await updateHealth(cachedNode, context)
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the node changed during the reconcile')
    throw error
  } finally {
    metrics?.observeCheck((clock.monotonicMs() - startedMs) / 1_000)
  }
}

async function updateHealth(cachedNode: Readonly<Stored<Node>>, context: NodeLifecycleContext): Promise<Outcome> {
  const { name } = cachedNode.metadata
  const mayHaveStoppedReporting =
    remainingGraceMs(cachedNode, context) <= 0 && unknownConditions(cachedNode, '').length > 0
  const currentNode = mayHaveStoppedReporting ? await readFromServer(name, context) : cachedNode
  const hasStoppedReporting = remainingGraceMs(currentNode, context) <= 0
  const node = hasStoppedReporting ? await setUnknownConditions(currentNode, context) : currentNode
  await updateTaints(node, context)
  if (!hasStoppedReporting) {
    context.recheckAfter(name, remainingGraceMs(node, context))
    return isReady(node)
      ? done
      : stuck(`the node is not ready: ${readyConditionOf(node)?.message ?? 'it has not reported yet'}`)
  }
  return stuck('the node has stopped reporting; waiting for its agent to renew the lease or write the status')
}

/** Returns the time until the grace period ends. A node that has never written a status has the longer startup grace period. */
function remainingGraceMs(node: Readonly<Stored<Node>>, { heartbeats, limits }: NodeLifecycleContext): number {
  const graceMs = readyConditionOf(node) ? limits.monitorGraceMs : limits.startupGraceMs
  return graceMs - heartbeats.silenceMs(node.metadata.name)
}

async function readFromServer(
  name: string,
  { client, heartbeats }: NodeLifecycleContext,
): Promise<Readonly<Stored<Node>>> {
  try {
    const lease = await find(client, leaseKind, { namespace: NODE_LEASE_NAMESPACE, name })
    if (lease) heartbeats.observeLease(lease)
    const node = await client.get(nodeKind, { name })
    heartbeats.observeNode(node)
    return node
  } catch (error) {
    heartbeats.restartGrace(name)
    throw error
  }
}

async function setUnknownConditions(
  node: Readonly<Stored<Node>>,
  context: NodeLifecycleContext,
): Promise<Readonly<Stored<Node>>> {
  const conditions = unknownConditions(node, timestamp(context.clock.nowMs()))
  if (conditions.length === 0) return node
  const { name, resourceVersion } = node.metadata
  const unreachable = unreachableCondition(timestamp(context.clock.nowMs()))
  const body = { metadata: { resourceVersion }, status: { conditions: [...conditions, unreachable] } }
  const updatedNode = await context.client.patch(
    nodeKind,
    { name },
    { type: 'strategic', body },
    { subresource: 'status' },
  )
  context.nodes.applyWriteResult(updatedNode)
  return updatedNode
}

async function updateTaints(node: Readonly<Stored<Node>>, context: NodeLifecycleContext): Promise<void> {
  const { client, clock, nodes, nodeEvents, tolerationTimes, metrics } = context
  const taints = desiredTaints(node, timestamp(clock.nowMs()))
  if (!taints) return
  const wasNotReady = hasNotReadyTaint(node.spec?.taints)
  if (wasNotReady && !hasNotReadyTaint(taints) && areAllNotReady(context))
    tolerationTimes.setAllNotReadyUntil(clock.monotonicMs())
  const { name, resourceVersion } = node.metadata
  const body = { metadata: { resourceVersion }, spec: { taints } }
  nodes.applyWriteResult(await client.patch(nodeKind, { name }, { type: 'merge', body }))
  if (wasNotReady === hasNotReadyTaint(taints)) return
  nodeEvents.record(nodeKind, node, nodeStatusChanged(node, wasNotReady ? 'NodeReady' : 'NodeNotReady'))
  if (!wasNotReady) metrics?.countNotReadyNode(node)
}

export const areAllNotReady = ({ nodes }: Pick<NodeLifecycleContext, 'nodes'>): boolean =>
  nodes.size > 0 && nodes.list().every(({ spec }) => hasNotReadyTaint(spec?.taints))

function recordRegistration(node: Readonly<Stored<Node>>, { registeredUids, nodeEvents }: NodeLifecycleContext): void {
  const { name, uid } = node.metadata
  if (registeredUids.get(name) === uid) return
  registeredUids.set(name, uid)
  nodeEvents.record(nodeKind, node, nodeRegistered(node))
}
