// Pods that nobody is left to shut down: those of a node that is gone, and those that are going on a node that is out of
// service. A node that is merely missing may just be late, so it has a while to appear, and the server is asked.
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { ObjectKey } from '../../client/index.ts'
import { type Cache, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { isReady } from './conditions.ts'
import type { NodeLifecycleContext } from './context.ts'
import { isHeldByOthers, removePods } from './remove-pod.ts'
import { isOutOfService } from './taints.ts'

const PODS_BY_NODE = 'node-lifecycle/node'

export const indexPods = (pods: Cache<Pod>): void => pods.addIndex(PODS_BY_NODE, nodeNamesOf)

const nodeNamesOf = ({ spec }: Readonly<Pod>): string[] => (spec?.nodeName ? [spec.nodeName] : [])

export const podsOn = (pods: Cache<Pod>, nodeName: string): readonly Readonly<Pod>[] =>
  pods.byIndex(PODS_BY_NODE, nodeName)

const NODE_IS_GONE = { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' }

export async function removePodsOfMissingNode(
  nodeName: string,
  context: NodeLifecycleContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { clock, nodes, pods, missingSinceMs, limits } = context
  const left = podsOn(pods, nodeName).filter((pod) => !isHeldByOthers(pod))
  if (nodes.get({ name: nodeName }) || left.length === 0) {
    missingSinceMs.delete(nodeName)
    return done
  }
  const sinceMs = missingSinceMs.get(nodeName) ?? clock.monotonicMs()
  missingSinceMs.set(nodeName, sinceMs)
  const leftMs = sinceMs + limits.quarantineMs - clock.monotonicMs()
  if (leftMs > 0) return retryAfter(leftMs, `there is no node ${nodeName}; its pods are removed if it does not appear`)
  const isThere = (await liveNode(nodeName, context)) !== undefined // the cache will say so, too
  if (!isThere) await removePods(left, context, { reason: 'orphaned', disruption: NODE_IS_GONE }, signal)
  missingSinceMs.delete(nodeName)
  return done
}

export async function removePodOutOfService(
  key: ObjectKey,
  context: NodeLifecycleContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const pod = context.pods.get(key)
  const nodeName = pod?.spec?.nodeName
  if (!pod?.metadata.deletionTimestamp || !nodeName) return done
  const node = context.nodes.get({ name: nodeName })
  if (!node || !mayForce(node)) return done
  if (isHeldByOthers(pod)) return stuck(`waits for ${pod.metadata.finalizers?.join(', ') ?? 'its end'}`)
  const live = await liveNode(nodeName, context)
  if (!live || !mayForce(live)) return done // its taint was taken away, or it is gone: the caches will say so, too
  await removePods([pod], context, { reason: 'out-of-service' }, signal)
  return done
}

/** A node that is ready shuts its pods down itself, whatever it is tainted with. */
export const mayForce = (node: Readonly<Node>): boolean => isOutOfService(node) && !isReady(node)

const liveNode = (name: string, { client }: NodeLifecycleContext): Promise<Readonly<Node> | undefined> =>
  client.get(nodeKind, { name }).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  })
