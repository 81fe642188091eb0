// Decides where a pod runs: returns the node that fits best or, if no node fits, the rejection and the pods to preempt.
// Writes and assumes nothing; only `rotation` advances. Both schedule-one.ts and the simulation in offline/ use it.
import type { Random } from '../base/clock.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import { findNode, runFiltersWithNominated, runPreFilters, type SearchOptions } from './find-node.ts'
import type { ActivePlugin, Plugin, PostFilterResult, RejectedAttempt } from './framework/plugin.ts'
import { signPod } from './framework/sign-pod.ts'
import { type Reason, reasonKey } from './framework/status.ts'
import { NO_NODES, noNodeFitsMessage, podRejectedMessage } from './messages.ts'
import type { Rejection } from './queue/unschedulable-pods.ts'

export interface DecisionDeps {
  readonly random: Random
  readonly cluster: ClusterState
  readonly plugins: readonly Plugin[]
  /** Index of the node at which the next search starts. */
  readonly rotation: { startAt: number }
}

/** The rejections of the unschedulable pods. */
interface RejectionCache {
  readonly size: number
  /** Returns the rejection of all pods with this signature, or undefined if the pod must be evaluated. */
  cachedRejection(signature: string): Rejection | undefined
}

export interface Placement {
  readonly do: 'place'
  readonly node: NodeInfo
  readonly active: readonly ActivePlugin[]
}

export interface Wait {
  readonly do: 'wait'
  readonly rejection: Rejection
  /** Undefined if the rejection is cached or concerns all nodes, or if preemption cannot help on any node. */
  readonly preemption?: PostFilterResult | undefined
}

export type Decision = Placement | Wait

export function decide(
  info: PodInfo,
  { plugins, cluster, rotation, random }: DecisionDeps,
  rejections: RejectionCache,
): Decision {
  const signature = rejections.size > 0 ? signPod(info, plugins) : undefined
  const cachedRejection = signature === undefined ? undefined : rejections.cachedRejection(signature)
  if (cachedRejection) return { do: 'wait', rejection: cachedRejection } // a pod of the same equivalence class is unschedulable
  const outcome = runPreFilters(info, plugins)
  const { nodes } = cluster
  if (outcome.is === 'rejected') {
    const { plugin, status } = outcome
    const message = podRejectedMessage(nodes.length, status.reasons)
    return { do: 'wait', rejection: rejectionOf(message, [plugin], status.reasons, undefined) }
  }
  const { active } = outcome
  const nominatedPodsOn = findNominatedPods(info, cluster)
  const nominatedNode = findNominatedNode(info, active, cluster)
  if (nominatedNode) return { do: 'place', node: nominatedNode, active }
  const result = findNode(active, { nodes, startAt: rotation.startAt, random, nominatedPodsOn })
  if (result.is === 'found') {
    rotation.startAt = (rotation.startAt + result.visitedCount) % nodes.length
    return { do: 'place', node: result.node, active }
  }
  const { statuses } = result
  const explanations = active.flatMap(({ plugin, state }) => plugin.explain?.(state, statuses) ?? [])
  const preemption = runPostFilters({ pod: info, active, statuses }, plugins)
  const postFilterMessage = preemption ? [preemption.result.message] : []
  const message = nodes.length === 0 ? NO_NODES : noNodeFitsMessage(statuses, [...explanations, ...postFilterMessage])
  const rejectedBy = new Set(nodes.length === 0 ? plugins.map(({ name }) => name) : result.rejectedBy)
  const reasons = [...statuses.values()].flatMap((status) => status.reasons)
  // A pod that waits for its victims has no signature: the other pods of its class must find other victims.
  const isWaiting = preemption !== undefined && preemption.result.is !== 'rejected'
  if (isWaiting) rejectedBy.add(preemption.pluginName)
  const classSignature = isWaiting ? undefined : (signature ?? signPod(info, plugins))
  return {
    do: 'wait',
    rejection: rejectionOf(message, rejectedBy, reasons, classSignature),
    preemption: preemption?.result,
  }
}

/** Returns a function that finds the nominated pods with precedence on a node, or undefined if no pod is nominated. */
export const findNominatedPods = (info: PodInfo, cluster: ClusterState): SearchOptions['nominatedPodsOn'] =>
  cluster.nominatedPods.size === 0 ? undefined : ({ name }) => cluster.nominatedPodsBefore(info, name)

/** Returns the pod's nominated node if the pod fits there now. */
function findNominatedNode(
  info: PodInfo,
  active: readonly ActivePlugin[],
  cluster: ClusterState,
): NodeInfo | undefined {
  const nodeName = cluster.nominatedPods.nodeOf(info.key)
  const node = nodeName === undefined ? undefined : cluster.node(nodeName)
  if (!node) return undefined
  return runFiltersWithNominated(active, node, cluster.nominatedPodsBefore(info, node.name)) ? undefined : node
}

/** Returns the result of the first plugin that considers preemption. */
export function runPostFilters(
  attempt: RejectedAttempt,
  plugins: readonly Plugin[],
): { readonly pluginName: string; readonly result: PostFilterResult } | undefined {
  for (const plugin of plugins) {
    const result = plugin.postFilter?.(attempt)
    if (result) return { pluginName: plugin.name, result }
  }
  return undefined
}

const rejectionOf = (
  message: string,
  rejectedBy: Iterable<string>,
  reasons: readonly Reason[],
  signature: string | undefined,
): Rejection => ({
  message,
  rejectedBy: new Set(rejectedBy),
  reasons: new Set(reasons.map(reasonKey)),
  isTransient: reasons.length > 0 && reasons.every(({ isTransient }) => isTransient === true),
  signature,
})
