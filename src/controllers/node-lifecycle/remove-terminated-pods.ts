// Removes terminated pods beyond a maximum: evicted pods first, then the oldest. The maximum 0 keeps all.

import type { Stored } from '../../api/kind.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type Cache, done, type Outcome } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { removePods } from './remove-pod.ts'

/** The only key of the work queue. */
const TERMINATED_KEY = 'finished'
const TERMINATED_PODS = 'node-lifecycle/finished'

export const indexTerminatedPods = (pods: Cache<Pod>): void => pods.addIndex(TERMINATED_PODS, terminatedKeys)

/** Returns the only key of the work queue if the pod has terminated and is not being deleted, otherwise no key. */
export const terminatedKeys = (pod: Readonly<Pod>): string[] =>
  hasTerminated(pod) && !pod.metadata.deletionTimestamp ? [TERMINATED_KEY] : []

export async function removeTerminatedPods(context: NodeLifecycleContext, signal: AbortSignal): Promise<Outcome> {
  const terminatedPods = context.pods.byIndex(TERMINATED_PODS, TERMINATED_KEY)
  const excessPods = excessPodsOf(terminatedPods, context.limits.terminatedPodsMax)
  await removePods(excessPods, context, { reason: 'terminated' }, signal)
  return done
}

/** Returns the pods to remove so that at most `podsMax` remain. Pure. */
function excessPodsOf(
  terminatedPods: readonly Readonly<Stored<Pod>>[],
  podsMax: number,
): readonly Readonly<Stored<Pod>>[] {
  if (podsMax <= 0 || terminatedPods.length <= podsMax) return []
  return [...terminatedPods].sort(byEvictionAndAge).slice(0, terminatedPods.length - podsMax)
}

function byEvictionAndAge(a: Readonly<Stored<Pod>>, b: Readonly<Stored<Pod>>): number {
  const rank = (pod: Readonly<Pod>) => (pod.status?.phase === 'Failed' && pod.status.reason === 'Evicted' ? 0 : 1)
  const time = (pod: Readonly<Pod>) => pod.metadata.creationTimestamp ?? ''
  return rank(a) - rank(b) || compare(time(a), time(b)) || compare(a.metadata.name, b.metadata.name)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
