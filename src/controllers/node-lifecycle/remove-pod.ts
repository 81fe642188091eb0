// Takes a pod away at once, where nobody is left to shut it down. It is marked as failed first: whoever watches it must
// not take it for one that is still running.
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import { type NodeLifecycleContext, timestamp } from './context.ts'

/** Why, as metrics call it. */
export type RemovalReason = 'orphaned' | 'out-of-service' | 'terminated'

export interface Disruption {
  readonly reason: string
  readonly message: string
}

const AT_ONCE_MAX = 32

export const hasEnded = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** What is left for others to let go of: nothing more can be done here. */
export const isHeldByOthers = (pod: Readonly<Pod>): boolean =>
  pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0 && hasEnded(pod)

/** All of them, a few at once; throws the first failure when the last one is settled. */
export async function removePods(
  pods: readonly Readonly<Pod>[],
  context: NodeLifecycleContext,
  why: { readonly reason: RemovalReason; readonly disruption?: Disruption },
  signal: AbortSignal,
): Promise<void> {
  for (let at = 0; at < pods.length && !signal.aborted; at += AT_ONCE_MAX) {
    const batch = pods.slice(at, at + AT_ONCE_MAX)
    const settled = await Promise.allSettled(batch.map((pod) => removePod(pod, context, why)))
    const failed = settled.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
  }
}

async function removePod(
  pod: Readonly<Pod>,
  context: NodeLifecycleContext,
  { reason, disruption }: { readonly reason: RemovalReason; readonly disruption?: Disruption },
): Promise<void> {
  const { client, metrics } = context
  const { namespace = '', name = '', uid } = pod.metadata
  metrics?.podRemoved(namespace, reason)
  try {
    if (!hasEnded(pod)) await patchStatus(pod, context, { phase: 'Failed' }, disruption)
    await client.delete(podKind, { namespace, name }, { gracePeriodSeconds: 0, ...(uid ? { uid } : {}) })
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return
    metrics?.podNotRemoved(namespace, reason)
    throw error
  }
}

/** Names the pod's uid: another pod may have the name by now. */
export function patchStatus(
  { metadata: { namespace = '', name = '', uid } }: Readonly<Pod>,
  { client, clock }: NodeLifecycleContext,
  status: object,
  disruption?: Disruption,
): Promise<Readonly<Pod>> {
  const condition = { type: 'DisruptionTarget', status: 'True', lastTransitionTime: timestamp(clock), ...disruption }
  const body = {
    metadata: { uid },
    status: { ...status, ...(disruption ? { conditions: [condition] } : {}) },
  }
  return client.patch(podKind, { namespace, name }, { type: 'strategic', body }, { subresource: 'status' })
}
