// Removes a pod without waiting for its node. Marks it as Failed first, so that no watcher takes it for a running pod.
import type { Stored } from '../../api/kind.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import { type NodeLifecycleContext, timestamp } from './context.ts'

/** The value of the metrics' reason label. */
export type RemovalReason = 'orphaned' | 'out-of-service' | 'terminated'

export interface Disruption {
  readonly reason: string
  readonly message: string
}

const CONCURRENT_REMOVALS_MAX = 32

export const hasTerminated = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** Only finalizers keep the pod: nothing more can be done here. */
export const isHeldByFinalizers = (pod: Readonly<Pod>): boolean =>
  pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0 && hasTerminated(pod)

/** In batches; throws the first failure after its batch has settled. */
export async function removePods(
  pods: readonly Readonly<Stored<Pod>>[],
  context: NodeLifecycleContext,
  why: { readonly reason: RemovalReason; readonly disruption?: Disruption },
  signal: AbortSignal,
): Promise<void> {
  for (let at = 0; at < pods.length && !signal.aborted; at += CONCURRENT_REMOVALS_MAX) {
    const batch = pods.slice(at, at + CONCURRENT_REMOVALS_MAX)
    const settled = await Promise.allSettled(batch.map((pod) => removePod(pod, context, why)))
    const failed = settled.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
  }
}

async function removePod(
  pod: Readonly<Stored<Pod>>,
  context: NodeLifecycleContext,
  { reason, disruption }: { readonly reason: RemovalReason; readonly disruption?: Disruption },
): Promise<void> {
  const { client, metrics } = context
  const { namespace = '', name, uid } = pod.metadata
  metrics?.podRemoved(namespace, reason)
  try {
    if (!hasTerminated(pod)) await patchStatus(pod, context, { phase: 'Failed' }, disruption)
    await client.delete(podKind, { namespace, name }, { gracePeriodSeconds: 0, uid })
  } catch (error) {
    if (isNotFound(error)) return
    metrics?.podNotRemoved(namespace, reason)
    throw error
  }
}

/** Conditional on the uid: another pod may have the name by now. */
export function patchStatus(
  { metadata: { namespace, name, uid } }: Readonly<Stored<Pod>>,
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
