// Decides where one pod runs: returns the node that fits best, or the rejection if no node fits. Writes and assumes nothing,
// so that schedule-one.ts and the simulation in offline/ share it.
import type { Random } from '../base/clock.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import { type ActivePlugin, findNode, runPreFilters } from './find-node.ts'
import type { Plugin } from './framework/plugin.ts'
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

export type Decision = Placement | { readonly do: 'wait'; readonly rejection: Rejection }

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
  const result = findNode(active, { nodes, startAt: rotation.startAt, random })
  if (result.is === 'found') {
    rotation.startAt = (rotation.startAt + result.visitedCount) % nodes.length
    return { do: 'place', node: result.node, active }
  }
  const { statuses } = result
  const explanations = active.flatMap(({ plugin, state }) => plugin.explain?.(state, statuses) ?? [])
  const message = nodes.length === 0 ? NO_NODES : noNodeFitsMessage(statuses, explanations)
  const rejectedBy = nodes.length === 0 ? plugins.map(({ name }) => name) : result.rejectedBy
  const reasons = [...statuses.values()].flatMap((status) => status.reasons)
  return { do: 'wait', rejection: rejectionOf(message, rejectedBy, reasons, signature ?? signPod(info, plugins)) }
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
