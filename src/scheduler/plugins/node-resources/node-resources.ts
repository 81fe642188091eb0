// Rejects nodes that lack the resources the pod requests, and prefers the node with the most cpu and memory left, so that
// pods spread.
import { type NodeInfo, nonZeroCpu, nonZeroMemory } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import { type Plugin, SCORE_MAX } from '../../framework/plugin.ts'
import { type Reason, type Status, unschedulable } from '../../framework/status.ts'
import { nodeChanged, podRemovedFromNode } from '../shared-hints.ts'

export const TOO_MANY_PODS: Reason = { type: 'TooManyPods', message: 'Too many pods' }
const insufficient = (resource: string): Reason => ({
  type: 'InsufficientResource',
  subject: resource,
  message: `Insufficient ${resource}`,
})

interface State {
  readonly pod: PodInfo
  readonly requests: readonly (readonly [resource: string, amount: number])[]
}

export const nodeResources: Plugin<State> = {
  name: 'NodeResourcesFit',
  weight: 1,
  events: [nodeChanged, podRemovedFromNode],
  preFilter: (pod) => ({
    code: 'Success',
    state: { pod, requests: [...pod.requests].filter(([, amount]) => amount > 0) },
  }),
  filter: ({ requests }, node) => shortages(requests, node),
  score: ({ pod }, nodes) => nodes.map((node) => leastAllocated(pod, node)),
  signPod: ({ requests }) => [...requests],
}

function shortages(requests: State['requests'], node: NodeInfo): Status | undefined {
  const { allocatable, requested } = node
  if (!allocatable) return undefined
  let reasons: Reason[] | undefined
  const podsMax = allocatable.get('pods')
  if (podsMax !== undefined && node.pods.size + 1 > podsMax) reasons = [TOO_MANY_PODS]
  for (const [resource, amount] of requests) {
    if (amount <= (allocatable.get(resource) ?? 0) - (requested.get(resource) ?? 0)) continue
    reasons ??= []
    reasons.push(insufficient(resource))
  }
  return reasons && unschedulable(...reasons)
}

/** The mean of the free shares of cpu and memory once the pod runs there. */
function leastAllocated({ requests }: PodInfo, node: NodeInfo): number {
  const { allocatable } = node
  if (!allocatable) return 0
  const cpu = freeShare(node.nonZeroCpu + nonZeroCpu(requests), allocatable.get('cpu') ?? 0)
  const memory = freeShare(node.nonZeroMemory + nonZeroMemory(requests), allocatable.get('memory') ?? 0)
  return Math.floor((cpu + memory) / 2)
}

const freeShare = (used: number, total: number): number =>
  total <= 0 || used >= total ? 0 : Math.floor(((total - used) * SCORE_MAX) / total)
