// Removes terminated pods beyond a maximum: evicted pods first, then the oldest.

import type { Stored } from '../../api/kind.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type Cache, done, type Outcome } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { removePods } from './remove-pod.ts'

/** The only key of the work queue. */
const FINISHED_KEY = 'finished'
const FINISHED_PODS = 'node-lifecycle/finished'

export const indexFinishedPods = (pods: Cache<Pod>): void => pods.addIndex(FINISHED_PODS, finishedKeys)

/** Returns the only key of the work queue if the pod has terminated and is not being deleted, otherwise no key. */
export const finishedKeys = (pod: Readonly<Pod>): string[] =>
  hasTerminated(pod) && !pod.metadata.deletionTimestamp ? [FINISHED_KEY] : []

export async function removeFinishedPods(context: NodeLifecycleContext, signal: AbortSignal): Promise<Outcome> {
  const finishedPods = context.pods.byIndex(FINISHED_PODS, FINISHED_KEY)
  const excessPods = excessPodsOf(finishedPods, context.limits.finishedPodsMax)
  await removePods(excessPods, context, { reason: 'terminated' }, signal)
  return done
}

/** Returns the pods to remove so that at most `podsMax` remain. Pure. */
function excessPodsOf(
  finishedPods: readonly Readonly<Stored<Pod>>[],
  podsMax: number,
): readonly Readonly<Stored<Pod>>[] {
  if (podsMax <= 0 || finishedPods.length <= podsMax) return []
  return [...finishedPods].sort(byEvictionAndAge).slice(0, finishedPods.length - podsMax)
}

function byEvictionAndAge(a: Readonly<Stored<Pod>>, b: Readonly<Stored<Pod>>): number {
  const rank = (pod: Readonly<Pod>) => (pod.status?.phase === 'Failed' && pod.status.reason === 'Evicted' ? 0 : 1)
  const time = (pod: Readonly<Pod>) => pod.metadata.creationTimestamp ?? ''
  return rank(a) - rank(b) || compare(time(a), time(b)) || compare(a.metadata.name, b.metadata.name)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
