// The controllers, wired once: beside an API server in its process (serve.ts), or alone against any server
// (remote-controllers.ts); led by one process where several could work.
import { setMaxListeners } from 'node:events'
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../api/feature-gates.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { processIdentity } from '../base/process-identity.ts'
import type { Client } from '../client/index.ts'
import { createAttachingControllers, createAttachingMetrics } from '../controllers/attaching/index.ts'
import { createBindingControllers, createBindingMetrics } from '../controllers/binding/index.ts'
import { createCapacityCleaner, createCapacityMetrics } from '../controllers/capacity/index.ts'
import { createEphemeralController, createEphemeralMetrics } from '../controllers/ephemeral/index.ts'
import { createGarbageController } from '../controllers/garbage-collection/index.ts'
import { createModifyingMetrics } from '../controllers/modifying/index.ts'
import { createNamespaceController } from '../controllers/namespaces/index.ts'
import { createNodeLifecycleControllers, createNodeLifecycleMetrics } from '../controllers/node-lifecycle/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import { createSourceProtection } from '../controllers/provisioning/csi/index.ts'
import {
  createProvisioningControllers,
  createProvisioningMetrics,
  type Provisioner,
} from '../controllers/provisioning/index.ts'
import { createQuotaController, createQuotaMetrics } from '../controllers/quota/index.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import { createCsiMetrics } from '../csi/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import {
  type ClientMetrics,
  createCacheSet,
  createClientMetrics,
  createLeaderElection,
  type LeaderElection,
} from '../runtime/index.ts'
import type { LeaseTimes } from '../runtime/leader-election.ts'
import { createScheduler, createSchedulerMetrics } from '../scheduler/index.ts'
import { type Connect, runDriverSocket } from './driver-socket.ts'

export const CONTROLLERS = [
  'attaching',
  'binding',
  'capacity-cleanup',
  'ephemeral',
  'garbage',
  'namespaces',
  'node-lifecycle',
  'protection',
  'quota',
  'scheduler',
] as const
export type ControllerName = (typeof CONTROLLERS)[number]

/** They want to know of every object, but not much: made last, they share what the others keep anyway. */
const READ_OUTLINES: readonly ControllerName[] = ['garbage', 'namespaces']

export interface ControllersRun {
  readonly client: Client
  readonly registry: Registry
  /** Those the client counts its requests in. Default: new ones. */
  readonly metrics?: ClientMetrics
  /** Which of them run. Default: all. */
  readonly names?: readonly ControllerName[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Other processes may run controllers on the same server: only the leader's work. */
  readonly isShared: boolean
  /** How long others wait for a leader that is gone. */
  readonly leaseTimes?: LeaseTimes
  readonly gates: FeatureGates
  /** Whether the scheduler holds back capacity that is promised and not yet reported. Default true. */
  readonly capacityReservation?: boolean
  /** How fast volumes of each driver may be changed. Absent: as fast as it goes. */
  readonly pace?: ThrottleOptions
  /** Makers of volumes in this process. */
  readonly inProcess: readonly Provisioner[]
  /** CSI drivers whose volumes are provided from here. */
  readonly drivers: readonly ProvidedDriver[]
  /** How these are reached. Default: unix sockets. */
  readonly connect?: Connect
}

export interface ProvidedDriver {
  /** Its socket. */
  readonly address: string
  /** The node it serves alone; absent: it serves all. */
  readonly node?: string
  /** Settles when it is known to be up or not to come; absent: nobody knows. */
  readonly up?: Promise<unknown>
}

/** Held by the process whose controllers work, where several share a server or a store. */
const CONTROLLERS_LEASE = 'stowage-controllers'

export async function runControllers(options: ControllersRun): Promise<void> {
  const { client, registry, names = CONTROLLERS, clock, random, log, signal, isShared, inProcess, gates } = options
  const { capacityReservation = true, pace, leaseTimes, connect, metrics = createClientMetrics(registry) } = options
  const attachingMetrics = createAttachingMetrics(registry)
  const bindingMetrics = createBindingMetrics(registry)
  const provisioningMetrics = createProvisioningMetrics(registry)
  const csiMetrics = createCsiMetrics(registry)
  const capacityMetrics = createCapacityMetrics(registry)
  const ephemeralMetrics = createEphemeralMetrics(registry)
  const modifyingMetrics = createModifyingMetrics(registry)
  const nodeLifecycleMetrics = createNodeLifecycleMetrics(registry)
  const quotaMetrics = createQuotaMetrics(registry)
  const schedulerMetrics = createSchedulerMetrics(registry)

  async function run(until: AbortSignal, election?: LeaderElection): Promise<void> {
    setMaxListeners(0, until) // every watch of every controller listens to it
    const caches = createCacheSet({ client, clock, random, log })
    const deps: ControllerDeps = { client, caches, clock, random, log, metrics }
    const led = election ? { election } : {}
    const makers: Record<ControllerName, () => Running> = {
      attaching: () => createAttachingControllers({ ...deps, attachingMetrics }),
      binding: () => createBindingControllers({ ...deps, inProcess, gates, bindingMetrics }),
      'capacity-cleanup': () => createCapacityCleaner({ ...deps, ...led }),
      ephemeral: () => createEphemeralController({ ...deps, ephemeralMetrics }),
      garbage: () => createGarbageController({ ...deps, kinds: ALL_KINDS }),
      namespaces: () => createNamespaceController({ ...deps, kinds: ALL_KINDS }),
      'node-lifecycle': () => createNodeLifecycleControllers({ ...deps, nodeLifecycleMetrics }),
      protection: () => createProtectionControllers({ ...deps, gates }),
      quota: () => createQuotaController({ ...deps, kinds: ALL_KINDS, quotaMetrics }),
      scheduler: () => createScheduler({ ...deps, gates, schedulerMetrics, capacityReservation }),
    }
    const ofOutlines = names.filter((name) => READ_OUTLINES.includes(name))
    const running = [
      ...names.filter((name) => !ofOutlines.includes(name)).map((name) => makers[name]()),
      ...inProcess.map((provisioner) =>
        createProvisioningControllers({
          ...deps,
          provisioner,
          options: { inProcess: true, bindsAtOnce: true, gates },
          provisioningMetrics,
          ...led,
        }),
      ),
      ...(options.drivers.length > 0 ? [createSourceProtection(deps)] : []),
      ...ofOutlines.map((name) => makers[name]()),
      ...options.drivers.map(({ up, ...driver }): Running => {
        const own = { csiMetrics, provisioningMetrics, capacityMetrics, modifyingMetrics }
        const of = {
          ...deps,
          ...driver,
          gates,
          ...own,
          ...led,
          ...(pace ? { pace } : {}),
          ...(connect ? { connect } : {}),
        }
        return {
          async run(over) {
            await up
            await runDriverSocket(of, over)
          },
        }
      }),
    ]
    const watched = caches.all()
    for (const cache of watched) metrics.caches.add(cache)
    try {
      await Promise.all(running.map((one) => one.run(until)))
    } finally {
      for (const cache of watched) metrics.caches.delete(cache)
      await caches.stop()
    }
  }

  if (!isShared) return run(signal)
  const election = createLeaderElection({
    client,
    clock,
    random,
    log,
    namespace: 'kube-system',
    name: CONTROLLERS_LEASE,
    identity: processIdentity(random),
    ...leaseTimes,
    onChange: (isLeader) => metrics.leadership(CONTROLLERS_LEASE, isLeader),
  })
  await election.run((until) => run(until, election), signal)
}

interface Running {
  run(signal: AbortSignal): Promise<void>
}
