// Evicts a pod that does not bear a NoExecute taint of its node any longer: it is marked for deletion with the time it
// asked for, and is gone when its node says so, or when the node is gone or out of service.
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { ObjectKey } from '../../client/index.ts'
import { done, type Outcome, retryAfter } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { evicting, notEvicting } from './events.ts'
import { areAllLost } from './reconcile-node.ts'
import { patchStatus } from './remove-pod.ts'
import { borneMs, evictingTaints } from './taints.ts'

const DISRUPTION = {
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
}

export async function evictWhenDue(key: ObjectKey, context: NodeLifecycleContext): Promise<Outcome> {
  const { client, clock, pods, nodes, evictions, evictionEvents } = context
  const pod = pods.get(key)
  if (!pod?.spec?.nodeName || pod.metadata.deletionTimestamp) {
    evictions.end(key)
    return done // gone or going
  }
  const { nodeName, tolerations } = pod.spec
  const known = nodes.get({ name: nodeName })
  const taints = evictingTaints(known)
  const borne = borneMs(taints, tolerations)
  if (taints.length === 0 || borne === Number.POSITIVE_INFINITY) {
    if (evictions.end(key) && known) evictionEvents.record(podKind, pod, notEvicting(key))
    return done
  }
  const nowMs = clock.monotonicMs()
  const leftMs = evictions.begin(key, pod.metadata.uid, nowMs) + borne - nowMs
  if (leftMs > 0)
    return retryAfter(leftMs, `evicted when it has borne ${keysOf(taints)} of node ${nodeName} long enough`)
  if (areAllLost(context)) {
    evictions.allLostUntil(nowMs)
    return retryAfter(Math.max(borne, context.limits.monitorGraceMs), 'no node is ready: nothing is evicted meanwhile')
  }
  // The cache may be behind: a node that is back keeps its pods.
  const node = await client.get(nodeKind, { name: nodeName }).catch(ifMissing)
  if (!node || borneMs(evictingTaints(node), tolerations) > borne) {
    return retryAfter(LOOK_AGAIN_MS, `what is known of node ${nodeName} is behind`)
  }
  return evict(key, pod, context, -leftMs)
}

const LOOK_AGAIN_MS = 1_000

async function evict(
  key: ObjectKey,
  pod: Readonly<Pod>,
  context: NodeLifecycleContext,
  overdueMs: number,
): Promise<Outcome> {
  const { client, clock, evictions, evictionEvents, metrics } = context
  const { namespace = '', name = '', uid } = pod.metadata
  const startedMs = clock.monotonicMs()
  try {
    await patchStatus(pod, context, {}, DISRUPTION)
    await client.delete(podKind, { namespace, name }, uid ? { uid } : {})
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 404)) throw error
    evictions.end(key)
    return done
  }
  evictions.end(key)
  evictionEvents.record(podKind, pod, evicting(key))
  metrics?.podEvicted((overdueMs + clock.monotonicMs() - startedMs) / 1_000)
  return done
}

const keysOf = (taints: readonly { readonly key: string }[]): string => taints.map(({ key }) => key).join(', ')

function ifMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 404) return undefined
  throw error
}
