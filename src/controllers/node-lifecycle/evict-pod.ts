// Evicts a pod that no longer tolerates a NoExecute taint of its node: deletes it with its grace period. The pod is removed
// after its node has shut it down, or by remove-lost-pods.ts if the node was deleted or is out of service.
import type { Stored } from '../../api/kind.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import { find, type ObjectKey } from '../../client/index.ts'
import { done, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { podDeletionCancelled, podMarkedForDeletion } from './events.ts'
import { areAllNotReady } from './reconcile-node.ts'
import { patchStatus } from './remove-pod.ts'
import { evictingTaints, tolerationMs } from './taints.ts'

const DISRUPTION = {
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
}

export async function evictPod(key: ObjectKey, context: NodeLifecycleContext): Promise<Outcome> {
  const { client, clock, pods, nodes, tolerationTimes, evictionEvents } = context
  const pod = pods.get(key)
  if (!pod?.spec?.nodeName || pod.metadata.deletionTimestamp) {
    tolerationTimes.end(key)
    return done // deleted or being deleted
  }
  const { nodeName, tolerations } = pod.spec
  const cachedNode = nodes.get({ name: nodeName })
  const taints = evictingTaints(cachedNode)
  const toleratedMs = tolerationMs(taints, tolerations)
  if (taints.length === 0 || toleratedMs === Number.POSITIVE_INFINITY) {
    if (tolerationTimes.end(key) && cachedNode) evictionEvents.record(podKind, pod, podDeletionCancelled(key))
    return done
  }
  const nowMs = clock.monotonicMs()
  const remainingMs = tolerationTimes.begin(key, pod.metadata.uid, nowMs) + toleratedMs - nowMs
  if (remainingMs > 0)
    return retryAfter(
      remainingMs,
      `the pod is evicted when its toleration of ${formatTaintKeys(taints)} on node ${nodeName} ends`,
    )
  if (areAllNotReady(context)) {
    tolerationTimes.setAllNotReadyUntil(nowMs)
    return retryAfter(Math.max(toleratedMs, context.limits.monitorGraceMs), 'no node is ready: evictions are suspended')
  }
  // Read the node from the server, because the cache may lag behind and the node may have recovered.
  const node = await find(client, nodeKind, { name: nodeName })
  if (!node || tolerationMs(evictingTaints(node), tolerations) > toleratedMs) {
    return retryAfter(RECHECK_INTERVAL_MS, `the cache does not have the latest version of node ${nodeName} yet`)
  }
  return deletePod(key, pod, context, -remainingMs)
}

const RECHECK_INTERVAL_MS = 1_000

async function deletePod(
  key: ObjectKey,
  pod: Readonly<Stored<Pod>>,
  context: NodeLifecycleContext,
  overdueMs: number,
): Promise<Outcome> {
  const { client, clock, tolerationTimes, evictionEvents, metrics } = context
  const { namespace, name, uid } = pod.metadata
  const startedMs = clock.monotonicMs()
  try {
    await patchStatus(pod, context, {}, DISRUPTION)
    await client.delete(podKind, { namespace, name }, { uid })
  } catch (error) {
    if (!isNotFound(error)) throw error
    tolerationTimes.end(key)
    return done
  }
  tolerationTimes.end(key)
  evictionEvents.record(podKind, pod, podMarkedForDeletion(key))
  metrics?.countEviction((overdueMs + clock.monotonicMs() - startedMs) / 1_000)
  return done
}

const formatTaintKeys = (taints: readonly { readonly key: string }[]): string => taints.map(({ key }) => key).join(', ')
