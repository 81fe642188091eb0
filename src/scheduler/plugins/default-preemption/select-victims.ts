// Selects the pods to delete from a node to make room for a pod of higher priority. Evaluates the pod on a copy of the node.
// Deleting a pod frees its resources, ports and volume slots, and other pods can use its claims. It never frees the storage of
// the claims, because claims outlive the pod.
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import { addPodToStates, removePodFromStates, runFiltersWithNominated } from '../../find-node.ts'
import type { ActivePlugin } from '../../framework/plugin.ts'
import { type Status, unresolvable } from '../../framework/status.ts'

interface VictimSearch {
  readonly pod: PodInfo
  readonly active: readonly ActivePlugin[]
  /** The pods that are nominated on the node and have precedence over the pod. */
  readonly nominatedPods: readonly PodInfo[]
  readonly nowMs: number
}

type VictimSelection =
  /** The most important victim is first. Empty if the pod fits as soon as volumes without a pod are detached. */
  { readonly is: 'fits'; readonly victims: readonly PodInfo[] } | { readonly is: 'rejected'; readonly status: Status }

export const NO_VICTIMS = unresolvable({
  type: 'NoVictims',
  message: 'No preemption victims found for incoming pod',
})

export function selectVictims(node: NodeInfo, search: VictimSearch): VictimSelection {
  const { pod, nominatedPods, nowMs } = search
  const pods = [...node.pods.values()]
  const candidates = pods.filter(({ priority }) => priority < pod.priority)
  if (candidates.length === 0) return { is: 'rejected', status: NO_VICTIMS }

  const emptiedNode = node.copyWith(
    pods.filter(({ priority }) => priority >= pod.priority),
    { ignoresUnusedAttachments: true },
  )
  let active: readonly ActivePlugin[] = candidates.reduce<readonly ActivePlugin[]>(
    (states, candidate) => removePodFromStates(states, candidate, node),
    search.active,
  )
  const rejection = runFiltersWithNominated(active, emptiedNode, nominatedPods)
  if (rejection) return { is: 'rejected', status: rejection.status }

  const victims: PodInfo[] = []
  for (const candidate of candidates.sort((a, b) => compareImportance(a, b, nowMs))) {
    const activeWithPod = addPodToStates(active, candidate, node)
    emptiedNode.addPod(candidate)
    if (runFiltersWithNominated(activeWithPod, emptiedNode, nominatedPods)) {
      emptiedNode.removePod(candidate.key)
      victims.push(candidate)
    } else active = activeWithPod
  }
  return { is: 'fits', victims }
}

/** Sorts the more important pod first: the one with the higher priority, then the one that has run longer. */
function compareImportance(a: PodInfo, b: PodInfo, nowMs: number): number {
  return b.priority - a.priority || startMs(a, nowMs) - startMs(b, nowMs)
}

/** Returns the current time for a pod without a start time, because it has just been placed. */
export function startMs({ pod }: PodInfo, nowMs: number): number {
  const startTime = pod.status?.startTime
  return startTime === undefined ? nowMs : Date.parse(startTime)
}
