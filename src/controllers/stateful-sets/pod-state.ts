// Classifies the state of a pod, on which the order of creation and deletion depends. Pure.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

export const isTerminating = ({ metadata }: Readonly<Pod>): boolean => metadata.deletionTimestamp !== undefined
export const isPending = ({ status }: Readonly<Pod>): boolean => status?.phase === 'Pending'

const findReadyCondition = ({ status }: Readonly<Pod>) =>
  status?.conditions?.find((condition) => condition.type === 'Ready' && condition.status === 'True')

export const isRunningAndReady = (pod: Readonly<Pod>): boolean =>
  pod.status?.phase === 'Running' && findReadyCondition(pod) !== undefined

/** Returns the time at which the pod has been ready for minReadySeconds, or undefined if it is not ready. */
export function availableAtMs(pod: Readonly<Pod>, minReadySeconds: number): number | undefined {
  const condition = findReadyCondition(pod)
  if (!condition) return undefined
  if (minReadySeconds === 0) return 0
  const { lastTransitionTime } = condition
  return lastTransitionTime ? Date.parse(lastTransitionTime) + minReadySeconds * 1_000 : undefined
}

export function isAvailable(pod: Readonly<Pod>, minReadySeconds: number, nowMs: number): boolean {
  const availableSinceMs = availableAtMs(pod, minReadySeconds)
  return availableSinceMs !== undefined && availableSinceMs <= nowMs
}
