// Evaluates a pod on every node with the plugins of the scheduler, without assuming, reserving or writing anything.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import { podInfoOf } from '../cluster/pod-info.ts'
import { runPostFilters } from '../decide-placement.ts'
import { runFiltersWithNominated, runPreFilters } from '../find-node.ts'
import type { PluginRejection } from '../framework/cluster-events.ts'
import type { ActivePlugin, Plugin, PostFilterResult } from '../framework/plugin.ts'
import type { RejectionDetail, Status } from '../framework/status.ts'
import { NO_NODES, noNodeFitsMessage, podRejectedMessage } from '../messages.ts'
import { createOfflinePlugins, type OfflineOptions } from './offline-plugins.ts'

export interface NodeEvaluation {
  readonly nodeName: string
  /** The first filter that rejects the node, or undefined if the pod fits. */
  readonly rejection: (PluginRejection & { readonly details: readonly RejectionDetail[] }) | undefined
}

export interface PodEvaluation {
  /** The plugin that rejects the pod for all nodes. */
  readonly podRejection: PluginRejection | undefined
  /** Empty if the pod is rejected for all nodes. */
  readonly nodes: readonly NodeEvaluation[]
  /** The message that the scheduler reports, or undefined if the pod fits on a node. */
  readonly message: string | undefined
  /** Undefined if the pod fits on a node, or if preemption cannot help on any node. */
  readonly preemption?: PostFilterResult | undefined
}

export function createPodEvaluator(options: OfflineOptions): (pod: Readonly<Pod>) => PodEvaluation {
  const { plugins, cluster } = createOfflinePlugins(options)
  return (pod) => evaluatePod(pod, plugins, cluster)
}

export function evaluatePod(pod: Readonly<Pod>, plugins: readonly Plugin[], cluster: ClusterState): PodEvaluation {
  const info = podInfoOf(pod)
  const { nodes } = cluster
  const outcome = runPreFilters(info, plugins)
  if (outcome.is === 'rejected') {
    const { plugin, status } = outcome
    const message = podRejectedMessage(nodes.length, status.reasons)
    return { podRejection: { plugin, status }, nodes: [], message }
  }
  const { active } = outcome
  const statuses = new Map<NodeInfo, Status>()
  const evaluations = nodes.map((node): NodeEvaluation => {
    const rejection = runFiltersWithNominated(active, node, cluster.nominatedPodsBefore(info, node.name))
    if (!rejection) return { nodeName: node.name, rejection }
    statuses.set(node, rejection.status)
    return { nodeName: node.name, rejection: { ...rejection, details: detailsOf(rejection, active, node) } }
  })
  if (statuses.size < nodes.length) return { podRejection: undefined, nodes: evaluations, message: undefined }
  const preemption = runPostFilters({ pod: info, active, statuses }, plugins)?.result
  const message = messageOf(active, statuses, preemption)
  return { podRejection: undefined, nodes: evaluations, message, preemption }
}

function detailsOf({ plugin: name }: PluginRejection, active: readonly ActivePlugin[], node: NodeInfo) {
  const rejecting = active.find(({ plugin }) => plugin.name === name)
  return rejecting?.plugin.detailRejection?.(rejecting.state, node) ?? []
}

function messageOf(
  active: readonly ActivePlugin[],
  statuses: ReadonlyMap<NodeInfo, Status>,
  preemption: PostFilterResult | undefined,
): string {
  if (statuses.size === 0) return NO_NODES
  const explanations = active.flatMap(({ plugin, state }) => plugin.explain?.(state, statuses) ?? [])
  return noNodeFitsMessage(statuses, preemption ? [...explanations, preemption.message] : explanations)
}
