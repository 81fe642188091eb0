// Removes terminated pods beyond a maximum: evicted pods first, then the oldest.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type Cache, done, type Outcome } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { hasTerminated, removePods } from './remove-pod.ts'

/** The only key of the work queue. */
export const FINISHED = 'finished'
const FINISHED_PODS = 'node-lifecycle/finished'

export const indexFinishedPods = (pods: Cache<Pod>): void => pods.addIndex(FINISHED_PODS, finishedKeys)

/** Pods that are being deleted do not count. */
export const finishedKeys = (pod: Readonly<Pod>): string[] =>
  hasTerminated(pod) && !pod.metadata.deletionTimestamp ? [FINISHED] : []

export async function removeFinishedPods(context: NodeLifecycleContext, signal: AbortSignal): Promise<Outcome> {
  const finished = context.pods.byIndex(FINISHED_PODS, FINISHED)
  const surplus = surplusOf(finished, context.limits.finishedPodsMax)
  await removePods(surplus, context, { reason: 'terminated' }, signal)
  return done
}

/** Pure. */
export function surplusOf(
  finished: readonly Readonly<Stored<Pod>>[],
  podsMax: number,
): readonly Readonly<Stored<Pod>>[] {
  if (podsMax <= 0 || finished.length <= podsMax) return []
  return [...finished].sort(evictedThenOldest).slice(0, finished.length - podsMax)
}

function evictedThenOldest(one: Readonly<Stored<Pod>>, other: Readonly<Stored<Pod>>): number {
  const rank = (pod: Readonly<Pod>) => (pod.status?.phase === 'Failed' && pod.status.reason === 'Evicted' ? 0 : 1)
  const time = (pod: Readonly<Pod>) => pod.metadata.creationTimestamp ?? ''
  return rank(one) - rank(other) || compare(time(one), time(other)) || compare(one.metadata.name, other.metadata.name)
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
