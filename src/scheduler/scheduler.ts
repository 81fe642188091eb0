// Composes and runs the scheduler, which assigns pods to nodes on which they and their volumes fit. schedule-one.ts schedules
// one pod; plugins/registry.ts lists the plugins.
import { allGatesOn, type FeatureGates } from '../api/feature-gates.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createEventRecorder, type EventRecorder, type Runnable } from '../runtime/index.ts'
import type { Placement } from '../volumes/placement.ts'
import { ClusterState } from './cluster/cluster-state.ts'
import { podInfoOf } from './cluster/pod-info.ts'
import { createConditionReporter } from './condition-reporter.ts'
import { createDirectPlacement } from './direct-placement.ts'
import { addEventHandlers } from './event-handlers.ts'
import type { ClusterEvent } from './framework/cluster-events.ts'
import type { PluginHandle } from './framework/plugin.ts'
import { schedulerCaches } from './framework/scheduler-caches.ts'
import { limitConcurrency } from './limit-concurrency.ts'
import type { SchedulerMetrics } from './metrics.ts'
import { REGISTRY } from './plugins/registry.ts'
import { followPods } from './pod-operations.ts'
import { type QueuedPodStatus, SchedulingQueue } from './queue/queue.ts'
import { createQueueingHints } from './queueing-hints.ts'
import { createRemedyBackoff } from './remedy-backoff.ts'
import { checkNode, checkVolumesOnNode, type ScheduleDeps, scheduleOne } from './schedule-one.ts'

export interface SchedulerOptions extends ControllerDeps {
  readonly gates?: FeatureGates
  /** Whether to reserve capacity for volumes that are not yet included in a capacity report. Default true. */
  readonly reservesCapacity?: boolean
  /** The placement policy of classes that set none. Default: free storage is one of several scores. */
  readonly defaultPlacement?: Placement
  /** The values of spec.schedulerName that select this scheduler. */
  readonly schedulerNames?: readonly string[]
  /** How long a pod waits for its volumes before the attempt fails. Default 600 s. */
  readonly bindTimeoutMs?: number
  readonly schedulerMetrics?: SchedulerMetrics
  /** The recorder of scheduling events. Default: a new recorder for the component `default-scheduler`. */
  readonly events?: EventRecorder
}

export interface Scheduler extends Runnable {
  /** Returns the pods without a node, with the last attempt's message. */
  queuedPods(): QueuedPodStatus[]
  /** The number of scheduling attempts so far. */
  readonly attempts: number
  /** The number of reservations that no API object represents yet, e.g. for volumes being provisioned. */
  readonly reservations: number
  /** Runs until the signal is aborted and all writes have settled. Can be called only once. */
  run(signal: AbortSignal): Promise<void>
}

export const SCHEDULER_NAMES = ['default-scheduler', 'stowage-scheduler'] as const
const BIND_TIMEOUT_MS = 600_000
const CONCURRENT_WRITES_MAX = 64
/** While this many pods are in their binding cycle, or have a preemption or a remedy in progress, no further pod is scheduled. */
const BINDING_PODS_MAX = 20_000
/** Number of scheduling cycles after which the scheduler yields to the event loop. */
const DECISIONS_PER_TURN = 8

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { client, clock, random, log, schedulerMetrics: metrics, gates = allGatesOn } = options
  const { bindTimeoutMs = BIND_TIMEOUT_MS, schedulerNames = SCHEDULER_NAMES, reservesCapacity = true } = options
  const caches = schedulerCaches(options.caches, gates)
  const events = options.events ?? createEventRecorder({ client, clock, random, log, component: SCHEDULER_NAMES[0] })
  const queue = new SchedulingQueue({ clock, random })
  const unfollowPods = followPods(queue, options.metrics?.operations, clock)
  const cluster = new ClusterState()
  const write = limitConcurrency(CONCURRENT_WRITES_MAX)

  /** Updates plugins first, because hints evaluate pods with the plugins' state after the event. */
  function emit(event: ClusterEvent): void {
    for (const plugin of plugins) plugin.observe?.(event)
    hints.dispatch(event, queue)
  }
  const handle: PluginHandle = {
    client,
    clock,
    random,
    log,
    events,
    caches,
    cluster,
    metrics,
    write,
    emit,
    bindTimeoutMs,
    reservesCapacity,
    defaultPlacement: options.defaultPlacement,
  }
  const plugins = REGISTRY.map((create) => create(handle))
  const hints = createQueueingHints(plugins, (pod, nodeName) => checkNode(pod, nodeName, { cluster, plugins }))
  const reporter = createConditionReporter({ client, pods: caches.pods, clock, random, log, events })
  const deps: ScheduleDeps = {
    client,
    clock,
    random,
    log,
    events,
    metrics,
    queue,
    cluster,
    plugins,
    hints,
    reporter,
    remedyBackoff: createRemedyBackoff({ clock, random }),
    write,
    emit,
    rotation: { startAt: 0 },
  }
  const checkVolumes = (pod: Readonly<Pod>, nodeName: string) =>
    checkVolumesOnNode(podInfoOf(pod), nodeName, { cluster, plugins })
  const directPlacement = createDirectPlacement({ ...options, ...caches, events, checkVolumes })
  const metricsSource = {
    queue,
    get reservations() {
      return plugins.reduce((sum, plugin) => sum + (plugin.reservations ?? 0), 0)
    },
  }

  async function schedulePods(signal: AbortSignal): Promise<void> {
    const bindingCycles = new Set<Promise<void>>()
    let onBindingCycleEnd: (() => void) | undefined
    let decisions = 0
    signal.addEventListener('abort', () => onBindingCycleEnd?.(), { once: true })
    while (!signal.aborted) {
      const pod = queue.pop()
      if (!pod) {
        await queue.whenReady(signal)
        continue
      }
      const cycle = scheduleOne(pod, deps, signal)
      if (cycle) {
        const trackedCycle = cycle.finally(() => {
          bindingCycles.delete(trackedCycle)
          onBindingCycleEnd?.()
        })
        bindingCycles.add(trackedCycle)
      }
      if (bindingCycles.size >= BINDING_PODS_MAX) {
        await new Promise<void>((resolve) => {
          onBindingCycleEnd = resolve
        })
      }
      if (++decisions % DECISIONS_PER_TURN === 0) await clock.nextTurn()
    }
    for (const plugin of plugins) plugin.stop?.()
    await Promise.all(bindingCycles)
  }

  async function schedule(signal: AbortSignal): Promise<void> {
    // Wait for all caches: without all pods, nodes would appear to have more free resources than they have.
    const { capacities, ...required } = caches
    const syncResults = await Promise.all([
      ...Object.values(required).map((cache) => cache.whenSynced(signal)),
      capacities?.whenSyncedOrNotServed(signal) ?? true,
    ])
    if (!syncResults.every(Boolean)) return
    const isResponsibleFor = ({ spec }: Readonly<Pod>) =>
      schedulerNames.includes(spec?.schedulerName ?? SCHEDULER_NAMES[0])
    const unsubscribe = addEventHandlers({ caches, cluster, queue, emit, isResponsibleFor })
    try {
      await schedulePods(signal)
    } finally {
      unsubscribe()
      unfollowPods()
      queue.stop()
      await reporter.stop()
    }
  }

  return {
    queues: [directPlacement.queue],
    queuedPods: () => queue.statuses(),
    get attempts() {
      return queue.attempts
    },
    get reservations() {
      return metricsSource.reservations
    },
    async run(signal) {
      metrics?.schedulers.add(metricsSource)
      const recorderAbort = new AbortController()
      const recorderRun = options.events ? undefined : events.run(recorderAbort.signal)
      try {
        await Promise.all([schedule(signal), directPlacement.run(signal)])
      } finally {
        metrics?.schedulers.delete(metricsSource)
        recorderAbort.abort()
        await recorderRun
      }
    },
  }
}
