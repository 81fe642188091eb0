// One pod, start to finish. The decision is synchronous, on the current cluster state, and the pod is assumed on its node
// at once: the next pod is evaluated as if this one were already running there. Writing the decision and waiting for
// volumes happen afterwards, while other pods are decided.
//
//   pop → preFilter → filter, score → assume, reserve → ‖ preBind → bind → Scheduled
//             │            └─ no node: unschedulable until a queueing hint requeues it; the condition has the reason
//             └─ the pod is rejected for every node: the same
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { isConflict } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type Client, find } from '../client/index.ts'
import type { EventRecorder } from '../runtime/index.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import type { ConditionReporter } from './condition-reporter.ts'
import { type ActivePlugin, findNode, runFilters, runPreFilters } from './find-node.ts'
import type { ClusterEvent, PluginRejection } from './framework/cluster-events.ts'
import type { Plugin, Remedy } from './framework/plugin.ts'
import { signPod } from './framework/sign-pod.ts'
import { type Reason, reasonKey } from './framework/status.ts'
import { assigned, NO_NODES, nodeDeleted, nodeRejectsAfterPreBind, noNodeFits, podRejected } from './messages.ts'
import type { SchedulerMetrics } from './metrics.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import type { Rejection } from './queue/unschedulable-pods.ts'
import type { QueueingHints } from './queueing-hints.ts'
import type { RemedyBackoff } from './remedy-backoff.ts'

export interface ScheduleDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
  readonly metrics: SchedulerMetrics | undefined
  readonly queue: SchedulingQueue
  readonly cluster: ClusterState
  readonly plugins: readonly Plugin[]
  readonly hints: QueueingHints
  readonly reporter: ConditionReporter
  readonly remedyBackoff: RemedyBackoff
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  readonly emit: (event: ClusterEvent) => void
  /** Index of the node at which the next search starts. */
  readonly rotation: { startAt: number }
}

type Decision =
  | { readonly do: 'place'; readonly node: NodeInfo; readonly active: readonly ActivePlugin[] }
  | { readonly do: 'wait'; readonly rejection: Rejection }

/** Decides synchronously. The returned promise settles when the decision has been carried out; it never rejects. */
export function scheduleOne(queued: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> | undefined {
  const { info } = queued
  const profile = info.pod.spec?.schedulerName ?? ''
  const startMs = deps.clock.monotonicMs()
  const tookSeconds = () => (deps.clock.monotonicMs() - startMs) / 1_000
  let decision: Decision
  try {
    decision = decide(info, deps)
  } catch (error) {
    deps.metrics?.attempted('error', profile, tookSeconds())
    deps.log.error({ err: error, pod: info.key }, 'evaluating a pod failed; retrying after a backoff')
    fail(queued, error, deps)
    return undefined
  }
  if (decision.do === 'wait') {
    deps.metrics?.attempted('unschedulable', profile, tookSeconds())
    return wait(queued, decision.rejection, deps, signal)
  }
  deps.metrics?.attempted('scheduled', profile, tookSeconds())
  const { node, active } = decision
  deps.cluster.assume(info, node.name)
  for (const { plugin, state } of active) plugin.reserve?.(state, node)
  deps.queue.nodeFound(queued)
  return bindingCycle(queued, node, active, deps, signal)
}

function decide(info: PodInfo, deps: ScheduleDeps): Decision {
  const { plugins, cluster, queue, rotation, random } = deps
  const signature = queue.unschedulable.size > 0 ? signPod(info, plugins) : undefined
  const cached = signature === undefined ? undefined : queue.unschedulable.cachedRejection(signature)
  if (cached) return { do: 'wait', rejection: cached } // a pod of its class waits, and no hint has applied since
  const outcome = runPreFilters(info, plugins)
  const { nodes } = cluster
  if (outcome.is === 'rejected') {
    const { plugin, status } = outcome
    const message = podRejected(nodes.length, status.reasons)
    return { do: 'wait', rejection: rejectionOf(message, [plugin], status.reasons, undefined) }
  }
  const { active } = outcome
  const search = findNode(active, { nodes, startAt: rotation.startAt, random })
  if (search.is === 'found') {
    rotation.startAt = (rotation.startAt + search.visited) % nodes.length
    return { do: 'place', node: search.node, active }
  }
  const { statuses } = search
  const explanations = active.flatMap(({ plugin, state }) => plugin.explain?.(state, statuses) ?? [])
  const message = nodes.length === 0 ? NO_NODES : noNodeFits(statuses, explanations)
  const rejectedBy = nodes.length === 0 ? plugins.map(({ name }) => name) : search.rejectedBy
  const reasons = [...statuses.values()].flatMap((status) => status.reasons)
  return { do: 'wait', rejection: rejectionOf(message, rejectedBy, reasons, signature ?? signPod(info, plugins)) }
}

const rejectionOf = (
  message: string,
  rejectedBy: Iterable<string>,
  reasons: readonly Reason[],
  signature: string | undefined,
): Rejection => ({ message, rejectedBy: new Set(rejectedBy), reasons: new Set(reasons.map(reasonKey)), signature })

/** Marks the pod unschedulable synchronously with the decision: an event between the two would be missed. */
function wait(
  queued: QueuedPod,
  rejection: Rejection,
  deps: ScheduleDeps,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { info } = queued
  const remedy = findRemedy(info, deps)
  const message = remedy ? `${rejection.message} ${remedy.message}` : rejection.message
  deps.queue.addUnschedulable(queued, { ...rejection, message }, deps.hints.keysOf(info, rejection))
  deps.reporter.report(info.pod, info.key, { type: 'Warning', reason: 'Unschedulable', message })
  return remedy && applyRemedy(queued, deps, signal)
}

/** The first remedy of a plugin with which the pod fits on a node. */
function findRemedy(info: PodInfo, { plugins, cluster, random, rotation }: ScheduleDeps): Remedy | undefined {
  return remediesOf(info, plugins).find(({ plugin, remedy }) => {
    const outcome = runPreFiltersWith(remedy, plugin, info, plugins)
    if (outcome.is === 'rejected') return false
    return findNode(outcome.active, { nodes: cluster.nodes, startAt: rotation.startAt, random }).is === 'found'
  })?.remedy
}

const remediesOf = (info: PodInfo, plugins: readonly Plugin[]) =>
  plugins.flatMap((plugin) => plugin.postFilter?.(info).map((remedy) => ({ plugin, remedy })) ?? [])

const runPreFiltersWith = (remedy: Remedy, remedied: Plugin, info: PodInfo, plugins: readonly Plugin[]) =>
  runPreFilters(info, plugins, (plugin) => (plugin === remedied ? remedy.preFilter() : plugin.preFilter(info)))

/** Waits for the backoff, then applies the remedy that helps by then, if the pod is still unschedulable. */
async function applyRemedy(queued: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> {
  const { clock, queue, remedyBackoff } = deps
  const { uid } = queued.info
  const waitMs = remedyBackoff.beginWait(uid)
  if (waitMs === undefined) return
  let remedy: Remedy | undefined
  try {
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const isUnschedulable = queue.status(queued.key)?.state === 'unschedulable' && queued.info.uid === uid
    remedy = isUnschedulable ? findRemedy(queued.info, deps) : undefined
    await remedy?.apply()
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    remedyBackoff.endWait(uid, remedy !== undefined)
  }
}

/** Why the pod does not fit on this node now, with or without a remedy; undefined if it does. */
export function checkNode(
  info: PodInfo,
  nodeName: string,
  { cluster, plugins }: Pick<ScheduleDeps, 'cluster' | 'plugins'>,
): PluginRejection | 'no such node' | undefined {
  const node = cluster.node(nodeName)
  if (!node) return 'no such node'
  const outcome = runPreFilters(info, plugins)
  if (outcome.is === 'rejected') return outcome
  const rejection = runFilters(outcome.active, node)
  if (!rejection) return undefined
  const isRemedied = remediesOf(info, plugins).some(({ plugin, remedy }) => {
    const remedied = runPreFiltersWith(remedy, plugin, info, plugins)
    return remedied.is === 'passed' && !runFilters(remedied.active, node)
  })
  return isRemedied ? undefined : rejection
}

async function bindingCycle(
  queued: QueuedPod,
  node: NodeInfo,
  active: readonly ActivePlugin[],
  deps: ScheduleDeps,
  signal: AbortSignal,
): Promise<void> {
  const { info } = queued
  try {
    await runPreBinds(info, node, active, deps)
    await bindPod(info, node.name, deps)
    deps.events.record(podKind, info.pod, {
      type: 'Normal',
      reason: 'Scheduled',
      message: assigned(info.key, node.name),
      action: 'Binding',
    })
    deps.queue.remove(info.key)
    for (const { plugin, state } of active) plugin.postBind?.(state, node)
  } catch (error) {
    // Requeue the pod before its resources are released: they may make other pods schedulable first.
    if (!signal.aborted) fail(queued, error, deps)
    for (const { plugin, state } of active) plugin.unreserve?.(state, node)
    if (deps.cluster.forget(info.key)) {
      const claims = info.claims.map(({ key }) => key)
      deps.emit({ on: 'podRemoved', nodeName: node.name, claims })
    }
  }
}

/** After this long in preBind the pod's condition says what it waits for: an older condition is no longer true. */
const SLOW_PRE_BIND_MS = 120_000

async function runPreBinds(info: PodInfo, node: NodeInfo, active: readonly ActivePlugin[], deps: ScheduleDeps) {
  const binding = active.filter(({ plugin, state }) => plugin.preBind && (plugin.preBindPreFlight?.(state) ?? true))
  if (binding.length === 0) return
  for (const { plugin, state } of binding) {
    const reportSlow = () => {
      if (!plugin.slowPreBind) return
      const { reason } = plugin.slowPreBind
      const message = plugin.slowPreBind.message(node.name)
      deps.reporter.report(info.pod, info.key, { type: 'Normal', reason, message })
    }
    const cancel = deps.clock.after(SLOW_PRE_BIND_MS, reportSlow)
    try {
      await plugin.preBind?.(state, node)
    } finally {
      cancel()
    }
  }
  const rejection = recheckNode(info, node.name, deps)
  if (rejection) throw new Error(nodeRejectsAfterPreBind(node.name, rejection.status.reasons))
}

/** The node may have been cordoned or tainted while preBind ran. */
function recheckNode(info: PodInfo, nodeName: string, deps: ScheduleDeps): PluginRejection | undefined {
  const node = deps.cluster.node(nodeName)
  if (!node) return undefined // bindPod reports it
  const rechecking = deps.plugins.filter(({ isRecheckedBeforeBind }) => isRecheckedBeforeBind)
  const outcome = runPreFilters(info, rechecking)
  return outcome.is === 'passed' ? runFilters(outcome.active, node) : undefined
}

async function bindPod({ key, uid, pod }: PodInfo, nodeName: string, deps: ScheduleDeps): Promise<void> {
  if (!deps.cluster.node(nodeName)) throw new Error(nodeDeleted(nodeName))
  const { namespace, name = '' } = pod.metadata
  // The subresource takes a Binding, which is not a stored kind.
  const binding = { metadata: { namespace, name, uid }, target: { kind: 'Node', name: nodeName } } as Pod
  try {
    await deps.write(() => deps.client.create(podKind, binding, { subresource: 'binding' }))
  } catch (error) {
    if (!isConflict(error)) throw error
    // The response to an earlier attempt may have been lost.
    const stored = await find(deps.client, podKind, { namespace, name })
    if (stored?.metadata.uid !== uid || stored.spec?.nodeName !== nodeName) throw error
    deps.log.debug({ pod: key, node: nodeName }, 'the pod was already bound to this node')
  }
}

function fail(queued: QueuedPod, error: unknown, deps: ScheduleDeps): void {
  const message = error instanceof Error ? error.message : String(error)
  const { info } = queued
  const isQueued = deps.queue.has(info.key)
  deps.queue.retryAfterBackoff(queued, message)
  if (isQueued) deps.reporter.report(info.pod, info.key, { type: 'Warning', reason: 'SchedulerError', message })
}
