// The scheduler: assigns every pod that names it to a node on which the pod and its volumes fit. This file composes and
// runs it; one pod's way through it is schedule-one.ts, the plugins are listed in plugins/registry.ts.
import { allGatesOn, type FeatureGates } from '../api/feature-gates.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createEventRecorder, type EventRecorder, type Runnable } from '../runtime/index.ts'
import { ClusterState } from './cluster/cluster-state.ts'
import { createConditionReporter } from './condition-reporter.ts'
import { createDirectPlacement } from './direct-placement.ts'
import { addEventHandlers } from './event-handlers.ts'
import type { ClusterEvent } from './framework/cluster-events.ts'
import type { PluginHandle } from './framework/plugin.ts'
import { schedulerCaches } from './framework/scheduler-caches.ts'
import { limitConcurrency } from './limit-concurrency.ts'
import type { SchedulerMetrics } from './metrics.ts'
import { REGISTRY } from './plugins/registry.ts'
import { type QueuedPodStatus, SchedulingQueue } from './queue/queue.ts'
import { createQueueingHints } from './queueing-hints.ts'
import { createRemedyBackoff } from './remedy-backoff.ts'
import { checkNode, type ScheduleDeps, scheduleOne } from './schedule-one.ts'

export interface SchedulerOptions extends ControllerDeps {
  readonly gates?: FeatureGates
  /** Reserve capacity for volumes that no capacity report counts yet. Default true. */
  readonly capacityReservation?: boolean
  /** The values of spec.schedulerName that select this scheduler. */
  readonly schedulerNames?: readonly string[]
  /** How long a pod waits for its volumes before the attempt fails. Default 600 s. */
  readonly bindTimeoutMs?: number
  readonly schedulerMetrics?: SchedulerMetrics
  /** Default: a separate recorder for component `default-scheduler`. */
  readonly events?: EventRecorder
}

export interface Scheduler extends Runnable {
  /** Every pod without a node, and why it has none. */
  queuedPods(): QueuedPodStatus[]
  /** Scheduling attempts so far. Events that make no pod schedulable cause none. */
  readonly attempts: number
  /** Reservations of plugins that no object shows yet, e.g. for volumes being provisioned. */
  readonly reservations: number
  /** Call once: its state is not valid for another leadership term. Settles when the last write has. */
  run(signal: AbortSignal): Promise<void>
}

export const SCHEDULER_NAMES = ['default-scheduler', 'stowage-scheduler'] as const
const BIND_TIMEOUT_MS = 600_000
const CONCURRENT_WRITES_MAX = 64
/** While this many pods are in their binding cycle, no further pod is scheduled. */
const BINDING_PODS_MAX = 20_000
/** Decisions before the event loop gets a turn. */
const DECISIONS_PER_TURN = 8

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { client, clock, random, log, schedulerMetrics: metrics, gates = allGatesOn } = options
  const { bindTimeoutMs = BIND_TIMEOUT_MS, schedulerNames = SCHEDULER_NAMES, capacityReservation = true } = options
  const caches = schedulerCaches(options.caches, gates)
  const events = options.events ?? createEventRecorder({ client, clock, random, log, component: SCHEDULER_NAMES[0] })
  const queue = new SchedulingQueue({ clock, random })
  const cluster = new ClusterState()
  const write = limitConcurrency(CONCURRENT_WRITES_MAX)

  /** Plugins first: a hint evaluates pods on the plugins' state after the event. */
  function emit(event: ClusterEvent): void {
    for (const plugin of plugins) plugin.observe?.(event)
    hints.dispatch(event, queue)
  }
  const handle: PluginHandle = {
    client,
    clock,
    log,
    caches,
    cluster,
    metrics,
    write,
    emit,
    bindTimeoutMs,
    capacityReservation,
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
  const direct = createDirectPlacement({ ...options, ...caches })

  async function scheduleAll(signal: AbortSignal): Promise<void> {
    const binding = new Set<Promise<void>>()
    let bindingEnded: (() => void) | undefined
    let decisions = 0
    signal.addEventListener('abort', () => bindingEnded?.(), { once: true })
    while (!signal.aborted) {
      const pod = queue.pop()
      if (!pod) {
        await queue.whenReady(signal)
        continue
      }
      const cycle = scheduleOne(pod, deps, signal)
      if (cycle) {
        const tracked = cycle.finally(() => {
          binding.delete(tracked)
          bindingEnded?.()
        })
        binding.add(tracked)
      }
      if (binding.size >= BINDING_PODS_MAX) {
        await new Promise<void>((resolve) => {
          bindingEnded = resolve
        })
      }
      if (++decisions % DECISIONS_PER_TURN === 0) await clock.nextTurn()
    }
    for (const plugin of plugins) plugin.stop?.()
    await Promise.all(binding)
  }

  async function schedule(signal: AbortSignal): Promise<void> {
    // With caches that are not complete, nodes would seem to have free resources that pods already use.
    const { capacities, ...required } = caches
    const synced = await Promise.all([
      ...Object.values(required).map((cache) => cache.whenSynced(signal)),
      capacities?.whenAnswered(signal) ?? true,
    ])
    if (!synced.every(Boolean)) return
    const isOurs = ({ spec }: Readonly<Pod>) => schedulerNames.includes(spec?.schedulerName ?? SCHEDULER_NAMES[0])
    const unsubscribe = addEventHandlers({ caches, cluster, queue, emit, isOurs })
    try {
      await scheduleAll(signal)
    } finally {
      unsubscribe()
      queue.stop()
      await reporter.stop()
    }
  }

  const measured = {
    queue,
    get reservations() {
      return plugins.reduce((sum, plugin) => sum + (plugin.reservations ?? 0), 0)
    },
  }

  return {
    queues: [direct.queue],
    queuedPods: () => queue.statuses(),
    get attempts() {
      return queue.attempts
    },
    get reservations() {
      return measured.reservations
    },
    async run(signal) {
      metrics?.running.add(measured)
      const recording = new AbortController()
      const recorded = options.events ? undefined : events.run(recording.signal)
      try {
        await Promise.all([schedule(signal), direct.run(signal)])
      } finally {
        metrics?.running.delete(measured)
        recording.abort()
        await recorded
      }
    },
  }
}
