// Keeps a node's conditions and taints true to what is seen of it. A node that has been silent too long is looked at once
// more at the server itself, for the caches may be behind; then nobody knows how it is, and its conditions say so. Taints
// follow the conditions, whoever wrote those. Each write names the version it was decided on.
//   conditions  conditions.ts      taints  taints.ts      silence  heartbeats.ts
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { conditionsOfSilence, isReady, readyOf } from './conditions.ts'
import { NODE_LEASES, type NodeLifecycleContext, timestamp } from './context.ts'
import { registeredNode, statusIsNow } from './events.ts'
import { isLost, taintsDue } from './taints.ts'

export async function reconcileNode(name: string, context: NodeLifecycleContext): Promise<Outcome> {
  const { nodes, heartbeats, metrics, clock } = context
  const known = nodes.get(name)
  if (!known || !heartbeats.isKept(name)) return done // nobody keeps it: it says nothing by being silent
  tellRegistered(known, context)
  const startedMs = clock.monotonicMs()
  try {
    return await keepTrue(known, context)
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return done // deleted meanwhile
    if (error instanceof ApiError && error.code === 409) return backOff('the node changed meanwhile')
    throw error
  } finally {
    metrics?.nodeChecked((clock.monotonicMs() - startedMs) / 1_000)
  }
}

async function keepTrue(known: Readonly<Node>, context: NodeLifecycleContext): Promise<Outcome> {
  const { name = '' } = known.metadata
  const isToReport = leftMs(known, context) <= 0 && conditionsOfSilence(known, '').length > 0
  const seen = isToReport ? await lookAgain(name, context) : known
  const isSilent = leftMs(seen, context) <= 0
  const node = isSilent ? await reportSilence(seen, context) : seen
  await followConditions(node, context)
  if (!isSilent) {
    context.lookAfter(name, leftMs(node, context))
    return isReady(node)
      ? done
      : stuck(`the node is not ready: ${readyOf(node)?.message ?? 'it has not said that it is'}`)
  }
  return stuck('the node has stopped reporting; this changes when its agent writes its status again')
}

/** Until the node has been silent too long. One whose agent never wrote a status is given more time to do so. */
function leftMs(node: Readonly<Node>, { heartbeats, limits }: NodeLifecycleContext): number {
  const graceMs = readyOf(node) ? limits.monitorGraceMs : limits.startupGraceMs
  return graceMs - heartbeats.silentForMs(node.metadata.name ?? '')
}

async function lookAgain(name: string, { client, heartbeats }: NodeLifecycleContext): Promise<Readonly<Node>> {
  try {
    const lease = await client.get(leaseKind, { namespace: NODE_LEASES, name }).catch(ifMissing)
    if (lease) heartbeats.seeLease(lease)
    const node = await client.get(nodeKind, { name })
    heartbeats.seeNode(node)
    return node
  } catch (error) {
    heartbeats.couldNotSee(name)
    throw error
  }
}

async function reportSilence(node: Readonly<Node>, context: NodeLifecycleContext): Promise<Readonly<Node>> {
  const conditions = conditionsOfSilence(node, timestamp(context.clock))
  if (conditions.length === 0) return node
  const { name = '', resourceVersion } = node.metadata
  const body = { metadata: { resourceVersion }, status: { conditions } }
  const written = await context.client.patch(nodeKind, { name }, { type: 'strategic', body }, { subresource: 'status' })
  context.nodes.learn(written)
  return written
}

async function followConditions(node: Readonly<Node>, context: NodeLifecycleContext): Promise<void> {
  const { client, clock, nodes, nodeEvents, evictions, metrics } = context
  const taints = taintsDue(node, timestamp(clock))
  if (!taints) return
  const wasLost = isLost(node.spec?.taints)
  if (wasLost && !isLost(taints) && areAllLost(context)) evictions.allLostUntil(clock.monotonicMs())
  const { name = '', resourceVersion } = node.metadata
  const body = { metadata: { resourceVersion }, spec: { taints } }
  nodes.learn(await client.patch(nodeKind, { name }, { type: 'merge', body }))
  if (wasLost === isLost(taints)) return
  nodeEvents.record(nodeKind, node, statusIsNow(node, wasLost ? 'NodeReady' : 'NodeNotReady'))
  if (!wasLost) metrics?.nodeLost(node)
}

export const areAllLost = ({ nodes }: Pick<NodeLifecycleContext, 'nodes'>): boolean =>
  nodes.size > 0 && nodes.list().every(({ spec }) => isLost(spec?.taints))

function tellRegistered(node: Readonly<Node>, { registered, nodeEvents }: NodeLifecycleContext): void {
  const { name = '', uid = '' } = node.metadata
  if (registered.get(name) === uid) return
  registered.set(name, uid)
  nodeEvents.record(nodeKind, node, registeredNode(node))
}

function ifMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 404) return undefined
  throw error
}
