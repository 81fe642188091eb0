// Removes a pod without waiting for its node. Marks it as Failed first, unless it has terminated: otherwise a watcher could
// mistake it for a running pod.
import type { Stored } from '../../api/kind.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { isNotFound } from '../../api/status-error.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { NodeLifecycleContext } from './context.ts'

/** The value of the metrics' reason label. */
export type RemovalReason = 'orphaned' | 'out-of-service' | 'terminated'

export interface Disruption {
  readonly reason: string
  readonly message: string
}

const CONCURRENT_REMOVALS_MAX = 32

/** Whether only finalizers keep the pod. */
export const isHeldByFinalizers = (pod: Readonly<Pod>): boolean =>
  pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0 && hasTerminated(pod)

/** Removes the pods in batches. Throws the first failure after all removals of its batch have ended. */
export async function removePods(
  pods: readonly Readonly<Stored<Pod>>[],
  context: NodeLifecycleContext,
  options: { readonly reason: RemovalReason; readonly disruption?: Disruption },
  signal: AbortSignal,
): Promise<void> {
  for (let start = 0; start < pods.length && !signal.aborted; start += CONCURRENT_REMOVALS_MAX) {
    const batch = pods.slice(start, start + CONCURRENT_REMOVALS_MAX)
    const results = await Promise.allSettled(batch.map((pod) => removePod(pod, context, options)))
    const failure = results.find((result) => result.status === 'rejected')
    if (failure) throw failure.reason
  }
}

async function removePod(
  pod: Readonly<Stored<Pod>>,
  context: NodeLifecycleContext,
  { reason, disruption }: { readonly reason: RemovalReason; readonly disruption?: Disruption },
): Promise<void> {
  const { client, metrics } = context
  const { namespace = '', name, uid } = pod.metadata
  metrics?.countRemoval(namespace, reason)
  try {
    if (!hasTerminated(pod)) await patchStatus(pod, context, { phase: 'Failed' }, disruption)
    await client.delete(podKind, { namespace, name }, { gracePeriodSeconds: 0, uid })
  } catch (error) {
    if (isNotFound(error)) return
    metrics?.countRemovalError(namespace, reason)
    throw error
  }
}

/** Patches the status with the uid as a precondition, because another pod may have the same name by now. */
export function patchStatus(
  { metadata: { namespace, name, uid } }: Readonly<Stored<Pod>>,
  { client, clock }: NodeLifecycleContext,
  status: object,
  disruption?: Disruption,
): Promise<Readonly<Pod>> {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: timestamp(clock.nowMs()),
    ...disruption,
  }
  const body = {
    metadata: { uid },
    status: { ...status, ...(disruption ? { conditions: [condition] } : {}) },
  }
  return client.patch(podKind, { namespace, name }, { type: 'strategic', body }, { subresource: 'status' })
}
