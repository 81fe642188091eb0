// Rejects nodes without the resources that the pod requests, and scores nodes by their free cpu and memory, so that pods
// spread.
import { canonicalQuantity, formatQuantity, quantityFromBytes } from '../../../api/quantity.ts'
import { type NodeInfo, nonZeroCpu, nonZeroMemory } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import { type Plugin, SCORE_MAX } from '../../framework/plugin.ts'
import { type Reason, type RejectionDetail, type Status, unresolvable, unschedulable } from '../../framework/status.ts'
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
  events: [nodeChanged, podRemovedFromNode],
  preFilter: (pod) => ({
    code: 'Success',
    state: { pod, requests: [...pod.requests].filter(([, amount]) => amount > 0) },
  }),
  filter: ({ requests }, node) => checkResources(requests, node),
  detailRejection: ({ requests }, node) => detailResources(requests, node),
  score: ({ pod }, nodes) => nodes.map((node) => leastAllocatedScore(pod, node)),
  signPod: ({ requests }) => [...requests],
}

function checkResources(requests: State['requests'], node: NodeInfo): Status | undefined {
  const { allocatable, requested } = node
  if (!allocatable) return undefined
  let reasons: Reason[] | undefined
  /** Whether the pod does not fit on the empty node either. */
  let isUnresolvable = false
  const podsMax = allocatable.get('pods')
  if (podsMax !== undefined && node.pods.size + 1 > podsMax) {
    reasons = [TOO_MANY_PODS]
    isUnresolvable = podsMax < 1
  }
  for (const [resource, amount] of requests) {
    const total = allocatable.get(resource) ?? 0
    if (amount <= total - (requested.get(resource) ?? 0)) continue
    reasons ??= []
    reasons.push(insufficient(resource))
    isUnresolvable ||= amount > total
  }
  return reasons && (isUnresolvable ? unresolvable(...reasons) : unschedulable(...reasons))
}

function detailResources(requests: State['requests'], { allocatable, requested, pods }: NodeInfo): RejectionDetail[] {
  const details: RejectionDetail[] = []
  const podsMax = allocatable?.get('pods')
  if (podsMax !== undefined && pods.size + 1 > podsMax) {
    const numbers = { limit: podsMax, used: pods.size }
    details.push({ type: 'TooManyPods', message: `the node has ${pods.size} of at most ${podsMax} pods`, numbers })
  }
  for (const [resource, amount] of requests) {
    const total = allocatable?.get(resource) ?? 0
    const free = total - (requested.get(resource) ?? 0)
    if (amount <= free) continue
    const [requestedText, freeText, totalText] = [amount, Math.max(free, 0), total].map((n) =>
      formatAmount(resource, n),
    )
    details.push({
      type: 'InsufficientResource',
      message: `the pod requests ${requestedText} ${resource}, but ${freeText} of ${totalText} is free`,
      numbers: { resource, requested: requestedText!, free: freeText!, total: totalText! },
    })
  }
  return details
}

/** Formats an amount of resource-amounts.ts: cpu is in millicores, other resources are in whole units. */
const formatAmount = (resource: string, amount: number): string =>
  resource === 'cpu' ? canonicalQuantity(`${amount}m`) : formatQuantity(quantityFromBytes(amount))

/** Returns the mean share of cpu and memory that stays free with the pod on the node, from 0 to SCORE_MAX. */
function leastAllocatedScore({ requests }: PodInfo, node: NodeInfo): number {
  const { allocatable } = node
  if (!allocatable) return 0
  const cpu = freeShareScore(node.nonZeroCpu + nonZeroCpu(requests), allocatable.get('cpu') ?? 0)
  const memory = freeShareScore(node.nonZeroMemory + nonZeroMemory(requests), allocatable.get('memory') ?? 0)
  return Math.floor((cpu + memory) / 2)
}

const freeShareScore = (used: number, total: number): number =>
  total <= 0 || used >= total ? 0 : Math.floor(((total - used) * SCORE_MAX) / total)
