// Whether a node has room for what the pod's containers ask for, and which node has most room left.
import { likelyCpu, likelyMemory, type NodeView } from '../../cluster/node-view.ts'
import { type Plugin, SCORE_MAX } from '../../plugin.ts'
import type { PodFacts } from '../../pod-facts.ts'

export const RESOURCES = 'NodeResourcesFit'
export const REASON_PODS = 'Too many pods'
export const insufficient = (resource: string): string => `Insufficient ${resource}`

export const resources: Plugin = {
  name: RESOURCES,
  weight: 1,
  prepare(pod) {
    const asked = [...pod.requests].filter(([, amount]) => amount > 0)
    return {
      is: 'judge',
      refuses: (node) => shortages(asked, node),
      scores: (nodes) => nodes.map((node) => roomLeft(pod, node)),
    }
  },
}

function shortages(asked: readonly (readonly [string, number])[], node: NodeView): readonly string[] | undefined {
  const { allocatable, requested } = node
  if (!allocatable) return undefined
  let reasons: string[] | undefined
  const podsMax = allocatable.get('pods')
  if (podsMax !== undefined && node.pods.size + 1 > podsMax) reasons = [REASON_PODS]
  for (const [name, amount] of asked) {
    if (amount <= (allocatable.get(name) ?? 0) - (requested.get(name) ?? 0)) continue
    reasons ??= []
    reasons.push(insufficient(name))
  }
  return reasons
}

/** The free part of cpu and memory, once the pod is there: pods spread out. */
function roomLeft({ requests }: PodFacts, { allocatable, cpuLikely, memoryLikely }: NodeView): number {
  if (!allocatable) return 0
  const cpu = freeShare(cpuLikely + likelyCpu(requests), allocatable.get('cpu') ?? 0)
  const memory = freeShare(memoryLikely + likelyMemory(requests), allocatable.get('memory') ?? 0)
  return Math.floor((cpu + memory) / 2)
}

const freeShare = (used: number, all: number): number =>
  all <= 0 || used >= all ? 0 : Math.floor(((all - used) * SCORE_MAX) / all)
