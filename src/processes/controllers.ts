// Composes the cluster's controllers. `stowage up` runs them in the API server process (server/components.ts), `stowage controllers`
// in a separate process. Controllers that need the server's keys are in server/server-controllers.ts.
import { setMaxListeners } from 'node:events'
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../api/feature-gates.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import type { InProcessComponent } from '../apiserver/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { createAttachingControllers, createAttachingMetrics } from '../controllers/attaching/index.ts'
import { createAutoGrowingController } from '../controllers/auto-growing/index.ts'
import { createBindingControllers, createBindingMetrics, RunningProvisioners } from '../controllers/binding/index.ts'
import { createCapacityCleaner, createCapacityMetrics } from '../controllers/capacity/index.ts'
import { createEphemeralController, createEphemeralMetrics } from '../controllers/ephemeral/index.ts'
import { createGarbageController } from '../controllers/garbage-collection/index.ts'
import { createLostVolumesController } from '../controllers/lost-volumes/index.ts'
import { createModifyingMetrics } from '../controllers/modifying/index.ts'
import { createNamespaceController } from '../controllers/namespaces/index.ts'
import { createNodeLifecycleControllers, createNodeLifecycleMetrics } from '../controllers/node-lifecycle/index.ts'
import { createNodeTopologyController } from '../controllers/node-topology/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import { createSourceProtection } from '../controllers/provisioning/csi/index.ts'
import {
  createProvisioningControllers,
  createProvisioningMetrics,
  type Provisioner,
} from '../controllers/provisioning/index.ts'
import { createQuotaController, createQuotaMetrics } from '../controllers/quota/index.ts'
import { createDefaultAccountController, createRootCaController } from '../controllers/service-accounts/index.ts'
import { createStatefulSetController } from '../controllers/stateful-sets/index.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import { createCsiMetrics, recordCalls } from '../csi/index.ts'
import {
  type ClientMetrics,
  createManager,
  fencedClient,
  type LeaseTimes,
  type Runnable,
  type TermDeps,
} from '../runtime/index.ts'
import type { HealthChecks } from '../runtime/monitoring.ts'
import { whenAborted } from '../runtime/stop-signal.ts'
import { createScheduler, createSchedulerMetrics } from '../scheduler/index.ts'
import type { LostVolumePolicy } from '../volumes/lost-volume-policy.ts'
import type { Placement } from '../volumes/placement.ts'
import type { UsageByClaim } from '../volumes/volume-usage.ts'
import { type Connect, runDriverControllers } from './run-driver-controllers.ts'
import type { ClientOf } from './server/component-clients.ts'

export const CONTROLLERS = [
  'attaching',
  'auto-growing',
  'binding',
  'capacity-cleanup',
  'ephemeral',
  'garbage',
  'lost-volumes',
  'namespaces',
  'node-lifecycle',
  'node-topology',
  'protection',
  'quota',
  'root-ca',
  'scheduler',
  'service-accounts',
  'stateful-sets',
] as const
export type ControllerName = (typeof CONTROLLERS)[number]

/** Controllers that read the metadata of every kind. They are created last, so that they reuse the caches of the others. */
const CONTROLLERS_OF_ALL_KINDS: readonly ControllerName[] = ['garbage', 'namespaces']

export interface ControllersOptions {
  /** Default: all. */
  readonly names?: readonly ControllerName[]
  readonly gates: FeatureGates
  /** Whether the scheduler reserves capacity for assigned pods until the driver reports it as used. Default: true. */
  readonly reservesCapacity?: boolean
  /** The placement policy for classes without one. */
  readonly defaultPlacement?: Placement
  /** The policy for lost volumes of classes that set none. Default: wait. */
  readonly lostVolumePolicy?: LostVolumePolicy
  /** How long a node may be silent before it counts as unreachable. Default: 40 s. */
  readonly nodeMonitorGraceMs?: number
  /** How long a driver must be missing on a node before its capacity objects are deleted. Default: 10 min. */
  readonly capacityMissingForMs?: number
  /** Rate limit for changes to the volumes of each driver. Default: no limit. */
  readonly throttle?: ThrottleOptions
  /** The API server's CA as PEM. Without it, root-ca does not run. */
  readonly rootCa?: string
  /** Returns the usage of mounted volumes as measured on their nodes. Without it, auto-growing does not run. */
  readonly readUsage?: (deps: TermDeps) => Promise<UsageByClaim>
  /** Provisioners that run in this process. */
  readonly inProcessProvisioners: readonly Provisioner[]
  readonly drivers: readonly DriverEndpoint[]
  /** Default: unix sockets. */
  readonly connect?: Connect
  /** Returns a controller's client, which authenticates as that controller. Default: `client` for all. */
  readonly clientOf?: ClientOf
}

/** A CSI driver whose controllers run in this process. */
export interface DriverEndpoint {
  /** The driver's socket. */
  readonly address: string
  /** The only node the driver serves. Absent if it serves all nodes. With `role`, the node that the driver runs on. */
  readonly node?: string
  /** Settles when the driver has started or failed to start. Absent if it runs in another process. */
  readonly started?: Promise<unknown>
  /** Resolves when the driver is ready. Default: `node` if there is a node, otherwise `cluster`. */
  readonly role?: Promise<DriverRole>
  /**
   * Registers a listener that is called when the name, version, capabilities or node info of the driver have changed. Returns a
   * function that removes the listener.
   */
  onReplaced?(listener: () => void): () => void
}

/** The volumes whose controllers call this driver: those of its node, all, or none. */
export type DriverRole = 'node' | 'cluster' | 'none'

/** The lease for leader election among processes that share an API server or a store. */
export const CONTROLLERS_LEASE = 'stowage-controllers'

export interface RunControllersOptions extends ControllersOptions {
  /** Used by the shared caches, by leader election, and by controllers without a separate client. */
  readonly client: Client
  readonly registry: Registry
  readonly metrics: ClientMetrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /**
   * Whether other processes may run controllers on the same store. If so, only the leader runs them, except those of node
   * drivers.
   */
  readonly isStoreShared: boolean
  readonly leaseTimes?: LeaseTimes
  /** Called once with the manager's health checks. */
  onHealth?(health: HealthChecks): void
}

export async function runControllers(options: RunControllersOptions): Promise<void> {
  const { client, registry, metrics, clock, random, log, signal, isStoreShared, leaseTimes, drivers } = options
  const { createClusterControllers, createDriverRunners } = prepareParts(options, registry)
  const common = { client, clock, random, log, metrics }
  // A node's driver is reachable only from its machine, so its controllers run there regardless of which process leads.
  const nodeDrivers = isStoreShared ? drivers.filter(({ node, role }) => node !== undefined || role) : []
  const otherDrivers = drivers.filter((driver) => driver.role || !nodeDrivers.includes(driver))
  const manager = createManager({
    ...common,
    lease: isStoreShared ? { namespace: 'kube-system', name: CONTROLLERS_LEASE, ...leaseTimes } : undefined,
    createControllers: (deps) => [
      ...createClusterControllers(deps),
      ...createDriverRunners(deps, otherDrivers, isStoreShared ? ['cluster'] : ['cluster', 'node']),
    ],
  })
  options.onHealth?.(manager.health)
  const managers = [manager]
  if (nodeDrivers.length > 0) {
    const createControllers = (deps: TermDeps) => createDriverRunners(deps, nodeDrivers, ['node'])
    managers.push(createManager({ ...common, createControllers }))
  }
  await Promise.all(managers.map(({ run }) => run(signal)))
}

/** Registers the metrics and returns a function that creates the controllers of a leadership term. */
export function prepareControllers(
  options: ControllersOptions,
  registry: Registry,
): (deps: TermDeps) => readonly Runnable[] {
  const { createClusterControllers, createDriverRunners } = prepareParts(options, registry)
  return (deps) => [
    ...createClusterControllers(deps),
    ...createDriverRunners(deps, options.drivers, ['cluster', 'node']),
  ]
}

interface ControllerParts {
  /** Creates the selected controllers and those of in-process provisioners. */
  createClusterControllers(deps: TermDeps): readonly Runnable[]
  /**
   * Creates a runner for each driver. The runner waits until the driver responds, then runs its controllers, unless the driver
   * has a role that is not one of `roles`.
   */
  createDriverRunners(
    deps: TermDeps,
    drivers: readonly DriverEndpoint[],
    roles: readonly DriverRole[],
  ): readonly Runnable[]
}

function prepareParts(options: ControllersOptions, registry: Registry): ControllerParts {
  const {
    names: requestedNames = CONTROLLERS,
    gates,
    reservesCapacity = true,
    defaultPlacement,
    lostVolumePolicy,
    nodeMonitorGraceMs,
    throttle,
    rootCa,
    readUsage,
    inProcessProvisioners,
    drivers,
    connect,
    clientOf,
  } = options
  const names = requestedNames
    .filter((name) => name !== 'root-ca' || rootCa !== undefined)
    .filter((name) => name !== 'auto-growing' || readUsage !== undefined)
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
  const driverMetrics = { provisioning: provisioningMetrics, capacity: capacityMetrics, modifying: modifyingMetrics }

  const fencedClientOf = ({ election }: TermDeps): ClientOf | undefined =>
    clientOf && election ? (component) => fencedClient(clientOf(component), election) : clientOf

  const runningProvisioners = new RunningProvisioners()

  function createClusterControllers(termDeps: TermDeps): readonly Runnable[] {
    const componentClientOf = fencedClientOf(termDeps)
    const depsOf = (component: InProcessComponent): TermDeps =>
      componentClientOf ? { ...termDeps, client: componentClientOf(component) } : termDeps
    const create: Record<ControllerName, (deps: TermDeps) => Runnable> = {
      attaching: (deps) => createAttachingControllers({ ...deps, attachingMetrics }),
      'auto-growing': (deps) => createAutoGrowingController({ ...deps, readUsage: () => readUsage!(deps) }),
      binding: (deps) =>
        createBindingControllers({ ...deps, inProcessProvisioners, runningProvisioners, gates, bindingMetrics }),
      'capacity-cleanup': (deps) => createCapacityCleaner({ ...deps, missingForMs: options.capacityMissingForMs }),
      ephemeral: (deps) => createEphemeralController({ ...deps, ephemeralMetrics }),
      garbage: (deps) => createGarbageController({ ...deps, kinds: ALL_KINDS }),
      'lost-volumes': (deps) => createLostVolumesController({ ...deps, defaultPolicy: lostVolumePolicy }),
      namespaces: (deps) => createNamespaceController({ ...deps, kinds: ALL_KINDS }),
      'node-lifecycle': (deps) =>
        createNodeLifecycleControllers({
          ...deps,
          nodeLifecycleMetrics,
          options: nodeMonitorGraceMs === undefined ? {} : { monitorGraceMs: nodeMonitorGraceMs },
        }),
      'node-topology': (deps) => createNodeTopologyController(deps),
      protection: (deps) => createProtectionControllers({ ...deps, gates }),
      quota: (deps) => createQuotaController({ ...deps, kinds: ALL_KINDS, quotaMetrics }),
      'root-ca': (deps) => createRootCaController({ ...deps, rootCa: rootCa! }),
      scheduler: (deps) => createScheduler({ ...deps, gates, schedulerMetrics, reservesCapacity, defaultPlacement }),
      'service-accounts': (deps) => createDefaultAccountController(deps),
      'stateful-sets': (deps) => createStatefulSetController(deps),
    }
    const createNamed = (name: ControllerName) => create[name](depsOf(name))
    const readsAllKinds = (name: ControllerName) => CONTROLLERS_OF_ALL_KINDS.includes(name)
    return [
      ...names.filter((name) => !readsAllKinds(name)).map(createNamed),
      ...inProcessProvisioners.map((provisioner) =>
        createProvisioningControllers({
          ...depsOf('provisioner'),
          provisioner,
          options: { inProcess: true, bindsOnSave: true, gates },
          provisioningMetrics,
          runningProvisioners,
        }),
      ),
      ...(drivers.length > 0 ? [createSourceProtection(depsOf('provisioner'))] : []),
      ...names.filter(readsAllKinds).map(createNamed),
    ]
  }

  function createDriverRunners(
    termDeps: TermDeps,
    endpoints: readonly DriverEndpoint[],
    roles: readonly DriverRole[],
  ): readonly Runnable[] {
    const callObserver = recordCalls(csiMetrics, termDeps.metrics.operations)
    const common = {
      gates,
      csiMetrics: callObserver,
      driverMetrics,
      runningProvisioners,
      throttle,
      connect,
      clientOf: fencedClientOf(termDeps),
    }
    return endpoints.map(({ started, address, node, role: roleOfDriver, onReplaced }) => ({
      async run(signal: AbortSignal) {
        await started
        const run = (servedNode: string | undefined, runSignal: AbortSignal) =>
          runDriverControllers({ ...termDeps, ...common, address, node: servedNode }, runSignal)
        if (!roleOfDriver) return run(node, signal)
        const role = await Promise.race([roleOfDriver, whenAborted(signal)])
        if (!role || !roles.includes(role)) return whenAborted(signal)
        const servedNode = role === 'node' ? node : undefined
        await repeatWhenReplaced((runSignal) => run(servedNode, runSignal), onReplaced, signal)
      },
    }))
  }

  return { createClusterControllers, createDriverRunners }
}

/** Restarts the work whenever the driver is replaced, because the work depends on the driver's capabilities. */
async function repeatWhenReplaced(
  run: (signal: AbortSignal) => Promise<void>,
  onReplaced: DriverEndpoint['onReplaced'],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const replaced = new AbortController()
    const stopListening = onReplaced?.(() => replaced.abort())
    const runSignal = AbortSignal.any([signal, replaced.signal])
    setMaxListeners(0, runSignal) // every watch and every reconcile adds a listener
    await run(runSignal).finally(stopListening)
    if (!replaced.signal.aborted) return
  }
}
