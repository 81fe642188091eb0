// Pods that have ended are kept for people to look at, but not without end: beyond a number the oldest go, those that a
// node had evicted before all others.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { type Cache, done, type Outcome } from '../../runtime/index.ts'
import type { NodeLifecycleContext } from './context.ts'
import { hasEnded, removePods } from './remove-pod.ts'

/** The only key of its queue. */
export const FINISHED = 'finished'
const FINISHED_PODS = 'node-lifecycle/finished'

export const indexFinishedPods = (pods: Cache<Pod>): void => pods.addIndex(FINISHED_PODS, finishedKeys)

/** Those that are going already are not counted. */
export const finishedKeys = (pod: Readonly<Pod>): string[] =>
  hasEnded(pod) && !pod.metadata.deletionTimestamp ? [FINISHED] : []

export async function removeFinishedPods(context: NodeLifecycleContext, signal: AbortSignal): Promise<Outcome> {
  const finished = context.pods.byIndex(FINISHED_PODS, FINISHED)
  const surplus = surplusOf(finished, context.limits.finishedPodsMax)
  await removePods(surplus, context, { reason: 'terminated' }, signal)
  return done
}

/** Pure. */
export function surplusOf(finished: readonly Readonly<Pod>[], podsMax: number): readonly Readonly<Pod>[] {
  if (podsMax <= 0 || finished.length <= podsMax) return []
  return [...finished].sort(evictedThenOldest).slice(0, finished.length - podsMax)
}

function evictedThenOldest(one: Readonly<Pod>, other: Readonly<Pod>): number {
  const rank = (pod: Readonly<Pod>) => (pod.status?.phase === 'Failed' && pod.status.reason === 'Evicted' ? 0 : 1)
  const time = (pod: Readonly<Pod>) => pod.metadata.creationTimestamp ?? ''
  return (
    rank(one) - rank(other) ||
    compare(time(one), time(other)) ||
    compare(one.metadata.name ?? '', other.metadata.name ?? '')
  )
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
