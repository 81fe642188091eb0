// Removes pods that no node agent can shut down: the pods of a node that does not exist, after a quarantine in which it may
// be created, and pods being deleted on an out-of-service node. The node's state is first confirmed by a read from the server.
import type { Stored } from '../../api/kind.ts'
import { isOutOfService } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { find, type ObjectKey } from '../../client/index.ts'
import { type Cache, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { isReady } from './conditions.ts'
import type { NodeLifecycleContext } from './context.ts'
import { isHeldByFinalizers, removePods } from './remove-pod.ts'

const PODS_BY_NODE = 'node-lifecycle/node'

export const indexPods = (pods: Cache<Pod>): void => pods.addIndex(PODS_BY_NODE, nodeNamesOf)

const nodeNamesOf = ({ spec }: Readonly<Pod>): string[] => (spec?.nodeName ? [spec.nodeName] : [])

export const podsOnNode = (pods: Cache<Pod>, nodeName: string): readonly Readonly<Stored<Pod>>[] =>
  pods.byIndex(PODS_BY_NODE, nodeName)

const NODE_DELETED = { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' }

export async function removePodsOfMissingNode(
  nodeName: string,
  context: NodeLifecycleContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { clock, nodes, pods, missingSinceMs, limits } = context
  const removablePods = podsOnNode(pods, nodeName).filter((pod) => !isHeldByFinalizers(pod))
  if (nodes.get({ name: nodeName }) || removablePods.length === 0) {
    missingSinceMs.delete(nodeName)
    return done
  }
  const sinceMs = missingSinceMs.get(nodeName) ?? clock.monotonicMs()
  missingSinceMs.set(nodeName, sinceMs)
  const remainingMs = sinceMs + limits.quarantineMs - clock.monotonicMs()
  if (remainingMs > 0)
    return retryAfter(remainingMs, `node ${nodeName} does not exist; its pods are removed unless the node is created`)
  const exists = (await readNode(nodeName, context)) !== undefined // the cache may lag behind
  if (!exists) await removePods(removablePods, context, { reason: 'orphaned', disruption: NODE_DELETED }, signal)
  missingSinceMs.delete(nodeName)
  return done
}

export async function removePodOfOutOfServiceNode(
  key: ObjectKey,
  context: NodeLifecycleContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const pod = context.pods.get(key)
  const nodeName = pod?.spec?.nodeName
  if (!pod?.metadata.deletionTimestamp || !nodeName) return done
  const node = context.nodes.get({ name: nodeName })
  if (!node || !mayRemovePodsOf(node)) return done
  if (isHeldByFinalizers(pod))
    return stuck(`waiting for the finalizers of the pod: ${pod.metadata.finalizers?.join(', ') ?? 'none'}`)
  const currentNode = await readNode(nodeName, context)
  if (!currentNode || !mayRemovePodsOf(currentNode)) return done // deleted, untainted or ready by now; the cache lags behind
  await removePods([pod], context, { reason: 'out-of-service' }, signal)
  return done
}

/** Whether pods of this node may be removed without its agent. A ready node shuts its pods down even if it is tainted. */
export const mayRemovePodsOf = (node: Readonly<Node>): boolean => isOutOfService(node) && !isReady(node)

const readNode = (name: string, { client }: NodeLifecycleContext): Promise<Readonly<Node> | undefined> =>
  find(client, nodeKind, { name })
