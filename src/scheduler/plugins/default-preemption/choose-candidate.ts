// Chooses the node on which preemption does the least harm. As in kube-scheduler, the criteria are, in this order: the lowest
// priority of the most important victim, the lowest sum of priorities, the fewest victims, the latest start of the most important
// victims, the first node. A node on which no further pod has to be deleted comes before all others: its victims are already
// terminating, for example because the scheduler restarted after it had deleted them.
import type { PodInfo } from '../../cluster/pod-info.ts'
import { startMs } from './select-victims.ts'

export interface Candidate {
  readonly nodeName: string
  /** The most important victim is first. */
  readonly victims: readonly PodInfo[]
}

interface ChoiceContext {
  readonly nowMs: number
  /** Whether the pod is being deleted. */
  readonly isTerminating: (pod: PodInfo) => boolean
}

export function chooseCandidate(candidates: readonly Candidate[], context: ChoiceContext): Candidate | undefined {
  let remaining = candidates
  for (const costOf of COSTS) {
    if (remaining.length <= 1) break
    const costs = remaining.map(({ victims }) => costOf(victims, context))
    const lowestCost = Math.min(...costs)
    remaining = remaining.filter((_, index) => costs[index] === lowestCost)
  }
  return remaining[0]
}

/** Added to each priority, so that among negative priorities fewer victims cost less. */
const PRIORITY_OFFSET = 2 ** 31

const COSTS: readonly ((victims: readonly PodInfo[], context: ChoiceContext) => number)[] = [
  (victims, { isTerminating }) => (victims.every(isTerminating) ? 0 : 1),
  (victims) => victims[0]?.priority ?? Number.NEGATIVE_INFINITY,
  (victims) => victims.reduce((sum, { priority }) => sum + priority + PRIORITY_OFFSET, 0),
  (victims) => victims.length,
  (victims, { nowMs }) => {
    const mostImportant = victims.filter(({ priority }) => priority === victims[0]?.priority)
    return -Math.min(...mostImportant.map((victim) => startMs(victim, nowMs)))
  },
]
