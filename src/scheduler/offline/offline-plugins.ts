// Creates the scheduler's plugins on caches that no API server updates, without a queue of pods and without writes.
import type { Clock, Random } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { Placement } from '../../volumes/placement.ts'
import { ClusterState } from '../cluster/cluster-state.ts'
import { addEventHandlers } from '../event-handlers.ts'
import type { ClusterEvent } from '../framework/cluster-events.ts'
import type { Plugin, PluginHandle } from '../framework/plugin.ts'
import type { SchedulerCaches } from '../framework/scheduler-caches.ts'
import { REGISTRY } from '../plugins/registry.ts'
import { SchedulingQueue } from '../queue/queue.ts'

export interface OfflineOptions {
  /** The caches must be synced. The plugins follow changes to them. */
  readonly caches: SchedulerCaches
  readonly clock: Clock
  readonly random: Random
  /** Whether to count capacity that is reserved for volumes being created. Default true. */
  readonly reservesCapacity?: boolean
  /** The placement policy of classes that set none. */
  readonly defaultPlacement?: Placement
  /** Called for every change to an object, after the plugins have observed it. */
  onEvent?(event: ClusterEvent): void
}

interface OfflinePlugins {
  readonly cluster: ClusterState
  readonly plugins: readonly Plugin[]
}

export function createOfflinePlugins(options: OfflineOptions): OfflinePlugins {
  const { caches, clock, random, reservesCapacity = true, onEvent } = options
  const cluster = new ClusterState()
  const handle: PluginHandle = {
    client: clientWithoutServer,
    clock,
    random,
    log: silentLog,
    events: NO_EVENTS,
    caches,
    cluster,
    metrics: undefined,
    write: (run) => run(),
    emit: () => {},
    bindTimeoutMs: 0,
    reservesCapacity,
    defaultPlacement: options.defaultPlacement,
  }
  const plugins = REGISTRY.map((create) => create(handle))
  const emit: PluginHandle['emit'] = (event) => {
    for (const plugin of plugins) plugin.observe?.(event)
    onEvent?.(event)
  }
  addEventHandlers({
    caches,
    cluster,
    emit,
    queue: new SchedulingQueue({ clock, random }),
    isResponsibleFor: () => false, // no pod is queued
  })
  return { cluster, plugins }
}

const NO_EVENTS = { record() {}, run: async () => {}, stats: () => ({ pending: 0, dropped: 0, sent: 0 }) }

/** Plugins use the client only in preBind and to apply a preemption or a remedy. Neither happens offline. */
const clientWithoutServer = new Proxy({} as Client, {
  get: (_, method) => () => Promise.reject(new Error(`plugins without a server do not call ${String(method)}`)),
})
