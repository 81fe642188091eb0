// Evaluates a pod on every node with the plugins of the scheduler, without assuming, reserving or writing anything.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import { podInfoOf } from '../cluster/pod-info.ts'
import { type ActivePlugin, runFilters, runPreFilters } from '../find-node.ts'
import type { PluginRejection } from '../framework/cluster-events.ts'
import type { Plugin } from '../framework/plugin.ts'
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
}

export function createPodEvaluator(options: OfflineOptions): (pod: Readonly<Pod>) => PodEvaluation {
  const { plugins, cluster } = createOfflinePlugins(options)
  return (pod) => evaluatePod(pod, plugins, cluster.nodes)
}

export function evaluatePod(pod: Readonly<Pod>, plugins: readonly Plugin[], nodes: readonly NodeInfo[]): PodEvaluation {
  const outcome = runPreFilters(podInfoOf(pod), plugins)
  if (outcome.is === 'rejected') {
    const { plugin, status } = outcome
    const message = podRejectedMessage(nodes.length, status.reasons)
    return { podRejection: { plugin, status }, nodes: [], message }
  }
  const { active } = outcome
  const statuses = new Map<NodeInfo, Status>()
  const evaluations = nodes.map((node): NodeEvaluation => {
    const rejection = runFilters(active, node)
    if (!rejection) return { nodeName: node.name, rejection }
    statuses.set(node, rejection.status)
    return { nodeName: node.name, rejection: { ...rejection, details: detailsOf(rejection, active, node) } }
  })
  const message = statuses.size < nodes.length ? undefined : messageOf(active, statuses)
  return { podRejection: undefined, nodes: evaluations, message }
}

function detailsOf({ plugin: name }: PluginRejection, active: readonly ActivePlugin[], node: NodeInfo) {
  const rejecting = active.find(({ plugin }) => plugin.name === name)
  return rejecting?.plugin.detailRejection?.(rejecting.state, node) ?? []
}

function messageOf(active: readonly ActivePlugin[], statuses: ReadonlyMap<NodeInfo, Status>): string {
  if (statuses.size === 0) return NO_NODES
  return noNodeFitsMessage(
    statuses,
    active.flatMap(({ plugin, state }) => plugin.explain?.(state, statuses) ?? []),
  )
}
