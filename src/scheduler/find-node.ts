// Finds the node for a pod: filters nodes until enough are feasible, then selects the one with the highest score. Nodes that
// a plugin avoids are used only if no other node is feasible. The start position and the randomness for ties are passed in.
import type { Random } from '../base/clock.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import type { PluginRejection } from './framework/cluster-events.ts'
import type { ActivePlugin, NodeStatuses, Plugin } from './framework/plugin.ts'
import { isRejection, type PreFilterResult, type Status } from './framework/status.ts'

export type PreFilterOutcome =
  | { readonly is: 'passed'; readonly active: readonly ActivePlugin[] }
  | ({ readonly is: 'rejected' } & PluginRejection)

export function runPreFilters(
  pod: PodInfo,
  plugins: readonly Plugin[],
  preFilter: (plugin: Plugin) => PreFilterResult<unknown> = (plugin) => plugin.preFilter(pod),
): PreFilterOutcome {
  const active: ActivePlugin[] = []
  for (const plugin of plugins) {
    const result = preFilter(plugin)
    if (isRejection(result)) return { is: 'rejected', plugin: plugin.name, status: result }
    if (result.code === 'Success') active.push({ plugin, state: result.state })
  }
  return { is: 'passed', active }
}

/** Returns the first rejection of the node, or undefined if it passes all filters. */
export function runFilters(active: readonly ActivePlugin[], node: NodeInfo): PluginRejection | undefined {
  for (const { plugin, state } of active) {
    const status = plugin.filter?.(state, node)
    if (status) return { plugin: plugin.name, status }
  }
  return undefined
}

/**
 * Like runFilters, but the pod must also fit together with nominated pods. Both are checked, because those pods may land on
 * another node, or share a volume with this pod.
 */
export function runFiltersWithNominated(
  active: readonly ActivePlugin[],
  node: NodeInfo,
  nominatedPods: readonly PodInfo[],
): PluginRejection | undefined {
  if (nominatedPods.length === 0) return runFilters(active, node)
  const fullNode = node.copyWith([...node.pods.values(), ...nominatedPods])
  const fullActive = nominatedPods.reduce((states, pod) => addPodToStates(states, pod, node), active)
  return runFilters(fullActive, fullNode) ?? runFilters(active, node)
}

export const addPodToStates = (active: readonly ActivePlugin[], pod: PodInfo, node: NodeInfo): ActivePlugin[] =>
  active.map(({ plugin, state }) => ({ plugin, state: plugin.addPod ? plugin.addPod(state, pod, node) : state }))

export const removePodFromStates = (active: readonly ActivePlugin[], pod: PodInfo, node: NodeInfo): ActivePlugin[] =>
  active.map(({ plugin, state }) => ({ plugin, state: plugin.removePod ? plugin.removePod(state, pod, node) : state }))

export type SearchResult =
  | { readonly is: 'found'; readonly node: NodeInfo; readonly visitedCount: number }
  | { readonly is: 'none'; readonly statuses: NodeStatuses; readonly rejectedBy: ReadonlySet<string> }

export interface SearchOptions {
  readonly nodes: readonly NodeInfo[]
  /** Index of the first node to filter. Each search continues where the previous one ended, so that all nodes are used. */
  readonly startAt: number
  readonly random: Random
  /** Returns the nominated pods that must fit on the node together with the pod. Absent if there are none. */
  readonly nominatedPodsOn?: ((node: NodeInfo) => readonly PodInfo[]) | undefined
}

export function findNode(
  active: readonly ActivePlugin[],
  { nodes, startAt, random, nominatedPodsOn }: SearchOptions,
): SearchResult {
  const feasibleMax = numFeasibleNodesToFind(nodes.length)
  const filterPlugins = active.filter(({ plugin }) => plugin.filter)
  const avoidPlugins = active.filter(({ plugin }) => plugin.avoid)
  const feasible: NodeInfo[] = []
  const avoided: NodeInfo[] = []
  const statuses = new Map<NodeInfo, Status>()
  const rejectedBy = new Set<string>()
  let visitedCount = 0
  for (; visitedCount < nodes.length && feasible.length < feasibleMax; visitedCount++) {
    const node = nodes[(startAt + visitedCount) % nodes.length]!
    const rejection = nominatedPodsOn
      ? runFiltersWithNominated(filterPlugins, node, nominatedPodsOn(node))
      : runFilters(filterPlugins, node)
    if (rejection) {
      statuses.set(node, rejection.status)
      rejectedBy.add(rejection.plugin)
    } else if (avoidPlugins.some(({ plugin, state }) => plugin.avoid?.(state, node))) avoided.push(node)
    else feasible.push(node)
  }
  const candidates = feasible.length > 0 ? feasible : avoided
  if (candidates.length === 0) return { is: 'none', statuses, rejectedBy }
  return { is: 'found', node: selectHighestScore(candidates, active, random), visitedCount }
}

const NODES_MIN = 100
const PERCENT_MAX = 50
const PERCENT_MIN = 5
const NODES_PER_PERCENT = 125

/**
 * Returns the number of feasible nodes at which the search stops. As in kube-scheduler, this is a percentage of the nodes
 * that falls with the cluster's size, from 50% to 5%, but at least 100 nodes, or all nodes of a smaller cluster.
 */
export function numFeasibleNodesToFind(count: number): number {
  if (count <= NODES_MIN) return count
  const percent = Math.max(PERCENT_MIN, PERCENT_MAX - Math.floor(count / NODES_PER_PERCENT))
  return Math.max(NODES_MIN, Math.floor((count * percent) / 100))
}

function selectHighestScore(nodes: readonly NodeInfo[], active: readonly ActivePlugin[], random: Random): NodeInfo {
  if (nodes.length === 1) return nodes[0]!
  const totals = new Float64Array(nodes.length)
  for (const { plugin, state } of active) {
    const scores = plugin.score?.(state, nodes)
    if (!scores) continue
    const weight = plugin.weight?.(state) ?? 1
    for (let index = 0; index < nodes.length; index++) totals[index]! += scores[index]! * weight
  }
  let best = 0
  let ties = 1
  for (let index = 1; index < nodes.length; index++) {
    if (totals[index]! > totals[best]!) {
      best = index
      ties = 1
    } else if (totals[index] === totals[best] && random() * ++ties < 1) best = index // all ties are equally likely
  }
  return nodes[best]!
}
