// Schedules one pod. The scheduling cycle is synchronous and assumes the pod on its node, so that the next pod is evaluated
// as if this one were already running. The binding cycle (preBind and bind) runs concurrently with other pods.
//
//   pop → preFilter → filter, score → assume, reserve → ‖ preBind → bind → Scheduled
//             │            └─ no node fits: preempt pods if that helps; unschedulable until a queueing hint requeues the pod
//             └─ the pod is rejected for all nodes: also unschedulable
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { isConflict } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type Client, find } from '../client/index.ts'
import type { EventRecorder } from '../runtime/index.ts'
import type { NodeInfo } from './cluster/node-info.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import type { ConditionReporter } from './condition-reporter.ts'
import {
  type Decision,
  type DecisionDeps,
  decide,
  findNominatedPods,
  type Placement,
  runPostFilters,
  type Wait,
} from './decide-placement.ts'
import { findNode, runFilters, runFiltersWithNominated, runPreFilters } from './find-node.ts'
import type { ClusterEvent, PluginRejection } from './framework/cluster-events.ts'
import type { ActivePlugin, Plugin, PostFilterResult, Remedy } from './framework/plugin.ts'
import { assignedMessage, nodeDeletedMessage, nodeRejectedMessage } from './messages.ts'
import type { SchedulerMetrics } from './metrics.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import type { QueueingHints } from './queueing-hints.ts'
import type { RemedyBackoff } from './remedy-backoff.ts'
import { writeNominatedNode } from './write-nominated-node.ts'

export interface ScheduleDeps extends DecisionDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  readonly events: EventRecorder
  readonly metrics: SchedulerMetrics | undefined
  readonly queue: SchedulingQueue
  readonly hints: QueueingHints
  readonly reporter: ConditionReporter
  readonly remedyBackoff: RemedyBackoff
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  readonly emit: (event: ClusterEvent) => void
}

/**
 * Runs the scheduling cycle synchronously. The returned promise settles when the binding cycle, the preemption or the attempt
 * to apply a remedy ends, and never rejects. Returns undefined if none of them is started.
 */
export function scheduleOne(queuedPod: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> | undefined {
  const { info } = queuedPod
  const profile = info.pod.spec?.schedulerName ?? ''
  const startMs = deps.clock.monotonicMs()
  const elapsedSeconds = () => (deps.clock.monotonicMs() - startMs) / 1_000
  let decision: Decision
  let remedy: Remedy | undefined
  try {
    decision = decide(info, deps, deps.queue.unschedulable)
    if (decision.do === 'wait' && decision.preemption?.is !== 'nominated') remedy = findRemedy(info, deps)
  } catch (error) {
    deps.metrics?.observeAttempt('error', profile, elapsedSeconds())
    deps.log.error({ err: error, pod: info.key }, 'evaluating a pod failed; retrying after a backoff')
    retryAfterFailure(queuedPod, error, deps)
    return undefined
  }
  if (decision.do === 'wait') {
    deps.metrics?.observeAttempt('unschedulable', profile, elapsedSeconds())
    const victimsDeleted = applyPreemption(queuedPod, decision.preemption, deps, signal)
    markUnschedulable(queuedPod, decision, remedy, deps)
    return victimsDeleted ?? (remedy && applyRemedy(queuedPod, deps, signal))
  }
  const { node, active } = decision
  deps.cluster.assume(info, node.name)
  for (const { plugin, state } of active) plugin.reserve?.(state, node)
  deps.queue.nodeFound(queuedPod)
  const decisionSeconds = elapsedSeconds()
  return runBindingCycle(queuedPod, decision, deps, {
    signal,
    onEnd: (result) => deps.metrics?.observeAttempt(result, profile, decisionSeconds),
  })
}

/** Marks the pod unschedulable. This is synchronous with the decision, so that no event between the two is missed. */
function markUnschedulable(
  queuedPod: QueuedPod,
  { rejection }: Wait,
  remedy: Remedy | undefined,
  deps: ScheduleDeps,
): void {
  const { info } = queuedPod
  const message = remedy ? `${rejection.message} ${remedy.message}` : rejection.message
  deps.queue.addUnschedulable(queuedPod, { ...rejection, message }, deps.hints.keysOf(info, rejection))
  const report = { type: 'Warning', reason: 'Unschedulable', message } as const
  if (rejection.isTransient) {
    const isCurrent = () => {
      const status = deps.queue.status(info.key)
      return status?.state === 'unschedulable' && status.message === message
    }
    deps.reporter.reportIfLasting(info.pod, info.key, report, isCurrent)
  } else deps.reporter.report(info.pod, info.key, report)
}

/**
 * Nominates the node synchronously with the decision, before another pod can use the victims' space, and starts to delete the
 * victims. Clears a nomination that no longer applies. The returned promise never rejects. Returns undefined if there is
 * nothing to write.
 */
function applyPreemption(
  queuedPod: QueuedPod,
  preemption: PostFilterResult | undefined,
  deps: ScheduleDeps,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { info } = queuedPod
  const { nominatedPods } = deps.cluster
  const previousNode = nominatedPods.nodeOf(info.key)
  if (preemption?.is === 'waiting' || (!preemption && previousNode === undefined)) return undefined
  const nodeName = preemption?.is === 'nominated' ? preemption.nodeName : ''
  if (previousNode !== undefined && previousNode !== nodeName) {
    nominatedPods.nominate(info, nodeName)
    deps.emit({ on: 'podRemoved', nodeName: previousNode, claims: info.claims.map(({ key }) => key) })
  }
  if (preemption?.is === 'nominated') {
    nominatedPods.nominate(info, nodeName)
    const isWaiting = () =>
      !signal.aborted &&
      deps.queue.uidOf(info.key) === info.uid &&
      !deps.cluster.nodeOf(info.key) &&
      nominatedPods.nodeOf(info.key) === nodeName
    return preemption.apply(isWaiting).catch(async (error) => {
      if (signal.aborted) return
      deps.log.warn({ err: error, pod: info.key }, 'preempting pods failed; looking for victims again')
      await deps.clock.sleep(PREEMPTION_RETRY_MS, signal).catch(() => {})
      if (isWaiting()) deps.queue.requeue(queuedPod)
    })
  }
  if (previousNode === undefined) return undefined
  // Preemption on the previously nominated node no longer helps the pod.
  return writeNominatedNode(info, '', deps).catch((error) =>
    deps.log.warn({ err: error, pod: info.key }, 'removing the nominated node failed; the next attempt removes it'),
  )
}

/** Returns the first remedy of a plugin with which the pod fits on a node. */
function findRemedy(info: PodInfo, { plugins, cluster, random, rotation }: ScheduleDeps): Remedy | undefined {
  return collectRemedies(info, plugins).find(({ plugin, remedy }) => {
    const outcome = runPreFiltersWith(remedy, plugin, info, plugins)
    if (outcome.is === 'rejected') return false
    const { nodes } = cluster
    const nominatedPodsOn = findNominatedPods(info, cluster)
    return findNode(outcome.active, { nodes, startAt: rotation.startAt, random, nominatedPodsOn }).is === 'found'
  })?.remedy
}

const collectRemedies = (info: PodInfo, plugins: readonly Plugin[]) =>
  plugins.flatMap((plugin) => plugin.remedies?.(info).map((remedy) => ({ plugin, remedy })) ?? [])

const runPreFiltersWith = (remedy: Remedy, remediedPlugin: Plugin, info: PodInfo, plugins: readonly Plugin[]) =>
  runPreFilters(info, plugins, (plugin) => (plugin === remediedPlugin ? remedy.preFilter() : plugin.preFilter(info)))

/** Applies a remedy after the backoff if the pod is still unschedulable. Retries after a failure, and never rejects. */
async function applyRemedy(queuedPod: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, queue, remedyBackoff } = deps
  const { uid } = queuedPod.info
  for (let shouldRetry = true; shouldRetry; ) {
    shouldRetry = false
    const waitMs = remedyBackoff.beginWait(uid)
    if (waitMs === undefined) return
    let remedy: Remedy | undefined
    try {
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      const isUnschedulable = queue.status(queuedPod.key)?.state === 'unschedulable' && queuedPod.info.uid === uid
      remedy = isUnschedulable ? findRemedy(queuedPod.info, deps) : undefined
      await remedy?.apply()
    } catch (error) {
      shouldRetry = !signal.aborted
      if (shouldRetry) {
        log.warn({ err: error, pod: queuedPod.key }, 'releasing resources for a pod failed; retrying after a backoff')
      }
    } finally {
      remedyBackoff.endWait(uid, remedy !== undefined || shouldRetry)
    }
  }
}

/** Returns why the pod does not fit on the node even with a remedy or preemption, or undefined if it fits. */
export function checkNode(
  info: PodInfo,
  nodeName: string,
  { cluster, plugins }: Pick<ScheduleDeps, 'cluster' | 'plugins'>,
): PluginRejection | 'no such node' | undefined {
  const node = cluster.node(nodeName)
  if (!node) return 'no such node'
  const outcome = runPreFilters(info, plugins)
  if (outcome.is === 'rejected') return outcome
  const nominatedPods = cluster.nominatedPodsBefore(info, nodeName)
  const rejection = runFiltersWithNominated(outcome.active, node, nominatedPods)
  if (!rejection) return undefined
  const statuses = new Map([[node, rejection.status]])
  if (runPostFilters({ pod: info, active: outcome.active, statuses }, plugins)?.result.is === 'nominated')
    return undefined
  const isRemedied = collectRemedies(info, plugins).some(({ plugin, remedy }) => {
    const remediedOutcome = runPreFiltersWith(remedy, plugin, info, plugins)
    return remediedOutcome.is === 'passed' && !runFiltersWithNominated(remediedOutcome.active, node, nominatedPods)
  })
  return isRemedied ? undefined : rejection
}

/** Returns why the volumes of a pod that is already on the node do not fit there, or undefined if they fit or this is unknown. */
export function checkVolumesOnNode(
  info: PodInfo,
  nodeName: string,
  { cluster, plugins }: Pick<ScheduleDeps, 'cluster' | 'plugins'>,
): string | undefined {
  const node = cluster.node(nodeName)
  if (!node) return undefined
  const outcome = runPreFilters(
    info,
    plugins.filter(({ name }) => VOLUME_PLUGINS.includes(name)),
  )
  if (outcome.is === 'rejected') return undefined
  const otherPods = [...node.pods.values()].filter(({ key }) => key !== info.key)
  const nodeWithoutPod = node.copyWith(otherPods)
  const details = outcome.active.flatMap(({ plugin, state }) => {
    const rejection = plugin.filter?.(state, nodeWithoutPod)
    if (!rejection) return []
    const found = plugin.detailRejection?.(state, nodeWithoutPod) ?? []
    return (found.length > 0 ? found : rejection.reasons).map(({ message }) => message)
  })
  return details.length > 0 ? [...new Set(details)].join('; ') : undefined
}

const VOLUME_PLUGINS: readonly string[] = ['NodeVolumeLimits', 'VolumeBinding']

/** How long the scheduler waits before it looks for victims again after the server rejected a write. */
const PREEMPTION_RETRY_MS = 1_000

interface BindingCycleOptions {
  readonly signal: AbortSignal
  /** Called when the pod is bound, or has no node because a step failed. Not called if the scheduler is stopping. */
  onEnd(result: 'scheduled' | 'error'): void
}

async function runBindingCycle(
  queuedPod: QueuedPod,
  { node, active }: Placement,
  deps: ScheduleDeps,
  { signal, onEnd }: BindingCycleOptions,
): Promise<void> {
  const { info } = queuedPod
  try {
    await runPreBinds(queuedPod, node, active, deps)
    await bindPod(info, node.name, deps)
    onEnd('scheduled')
    deps.events.record(podKind, info.pod, {
      type: 'Normal',
      reason: 'Scheduled',
      message: assignedMessage(info.key, node.name),
      action: 'Binding',
    })
    deps.queue.remove(info.key)
    for (const { plugin, state } of active) plugin.postBind?.(state, node)
  } catch (error) {
    // Requeue the pod before its resources are released, because the release may requeue other pods.
    if (!signal.aborted) {
      onEnd('error')
      retryAfterFailure(queuedPod, error, deps)
    }
    for (const { plugin, state } of active) plugin.unreserve?.(state, node)
    if (deps.cluster.forget(info.key)) {
      const claims = info.claims.map(({ key }) => key)
      deps.emit({ on: 'podRemoved', nodeName: node.name, claims })
    }
  }
}

/** After this time in the preBind of a plugin with `slowPreBind`, the pod's condition is updated, because it is obsolete. */
const SLOW_PRE_BIND_MS = 120_000

async function runPreBinds(
  queuedPod: QueuedPod,
  node: NodeInfo,
  active: readonly ActivePlugin[],
  deps: ScheduleDeps,
): Promise<void> {
  const { info } = queuedPod
  const preBindPlugins = active.filter(
    ({ plugin, state }) => plugin.preBind && (plugin.preBindPreFlight?.(state) ?? true),
  )
  if (preBindPlugins.length === 0) return
  for (const { plugin, state } of preBindPlugins) {
    const awaited = plugin.slowPreBind && {
      reason: plugin.slowPreBind.reason,
      message: plugin.slowPreBind.message(node.name),
    }
    if (awaited) deps.queue.setAwaited(queuedPod, awaited)
    const cancel = deps.clock.after(SLOW_PRE_BIND_MS, () => {
      if (awaited) deps.reporter.report(info.pod, info.key, { type: 'Normal', ...awaited })
    })
    try {
      await plugin.preBind?.(state, node)
    } finally {
      cancel()
    }
  }
  const rejection = recheckNode(info, node.name, deps)
  if (rejection) throw new Error(nodeRejectedMessage(node.name, rejection.status.reasons))
}

/** Filters the node again, because it may have been cordoned or tainted during preBind. */
function recheckNode(info: PodInfo, nodeName: string, deps: ScheduleDeps): PluginRejection | undefined {
  const node = deps.cluster.node(nodeName)
  if (!node) return undefined // bindPod reports the missing node
  const recheckedPlugins = deps.plugins.filter(({ isRecheckedBeforeBind }) => isRecheckedBeforeBind)
  const outcome = runPreFilters(info, recheckedPlugins)
  return outcome.is === 'passed' ? runFilters(outcome.active, node) : undefined
}

async function bindPod({ key, uid, pod }: PodInfo, nodeName: string, deps: ScheduleDeps): Promise<void> {
  if (!deps.cluster.node(nodeName)) throw new Error(nodeDeletedMessage(nodeName))
  const { namespace, name = '' } = pod.metadata
  // The subresource expects a Binding, which is not a stored kind.
  const body = { metadata: { namespace, name, uid }, target: { kind: 'Node', name: nodeName } } as Pod
  try {
    await deps.write(() => deps.client.create(podKind, body, { subresource: 'binding' }))
  } catch (error) {
    if (!isConflict(error)) throw error
    // The response to an earlier attempt may have been lost.
    const storedPod = await find(deps.client, podKind, { namespace, name })
    if (storedPod?.metadata.uid !== uid || storedPod.spec?.nodeName !== nodeName) throw error
    deps.log.debug({ pod: key, node: nodeName }, 'the pod was already bound to this node')
  }
}

function retryAfterFailure(queuedPod: QueuedPod, error: unknown, deps: ScheduleDeps): void {
  const message = error instanceof Error ? error.message : String(error)
  const { info } = queuedPod
  const isQueued = deps.queue.has(info.key)
  deps.queue.retryAfterBackoff(queuedPod, message)
  if (isQueued) deps.reporter.report(info.pod, info.key, { type: 'Warning', reason: 'SchedulerError', message })
}
