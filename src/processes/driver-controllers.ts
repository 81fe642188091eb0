// Creates the controllers of one CSI driver. The callers, run-driver-controllers.ts and run-sidecar.ts, select them by passing their
// options.
import type { FeatureGates } from '../api/feature-gates.ts'
import type { InProcessComponent } from '../apiserver/index.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Client } from '../client/index.ts'
import { type AttacherOptions, createAttacher } from '../controllers/attaching/index.ts'
import type { RunningProvisioners } from '../controllers/binding/index.ts'
import { type CapacityMetrics, type CapacityOptions, createCapacityControllers } from '../controllers/capacity/index.ts'
import type { ModifyingMetrics } from '../controllers/modifying/index.ts'
import {
  type CsiProvisionerOptions,
  createCsiProvisioner,
  createSourceProtection,
  hasTopology,
  type NodeDeployment,
  type SourceProtectionOptions,
} from '../controllers/provisioning/csi/index.ts'
import {
  createProvisioningControllers,
  type ProvisioningMetrics,
  type ProvisioningOptions,
} from '../controllers/provisioning/index.ts'
import {
  createVolumeHealth,
  type VolumeHealthMetrics,
  type VolumeHealthOptions,
} from '../controllers/volume-health/index.ts'
import type { CsiDriver } from '../csi/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import {
  createEventRecorder,
  createSilentNodes,
  type EventRecorder,
  type LeaderElection,
  type Runnable,
  type WorkQueue,
  withRecorders,
} from '../runtime/index.ts'
import type { DiscoveredDriver } from './discover-driver.ts'
import { intentLease } from './lease-names.ts'
import type { ClientOf } from './server/component-clients.ts'
import { createVolumeChanges, type DriverChangeOptions } from './volume-changes.ts'

export interface DriverControllersDeps extends ControllerDeps, DiscoveredDriver {
  /** Serializes calls about one volume (src/csi/serialize-calls.ts). */
  readonly driver: CsiDriver
  readonly gates: FeatureGates
  readonly election?: LeaderElection
  /**
   * The namespace of the leases. Without it, without leader election, or for a driver of one node, the provisioner records its
   * intents as finalizers on claims instead of in a lease.
   */
  readonly leaseNamespace?: string
  readonly driverMetrics: DriverMetrics
  /** The list that a binder in this process reads. Default: the binder runs in another process. */
  readonly runningProvisioners?: RunningProvisioners
  /** Whether the process may list nodes. Default: only if the provisioner needs them for the topology of the driver. */
  readonly mayListNodes?: boolean
  /** Returns a controller's client, which authenticates as that controller. Default: `client` for all. */
  readonly clientOf?: ClientOf
}

export interface DriverMetrics {
  readonly provisioning?: ProvisioningMetrics
  readonly capacity?: CapacityMetrics
  readonly modifying?: ModifyingMetrics
  readonly volumeHealth?: VolumeHealthMetrics
}

/** The options of each controller to create. A controller without options is not created. */
export interface DriverParts {
  readonly provisioning?: ProvisioningOptions & {
    readonly csi?: Partial<CsiProvisionerOptions>
    /** How provisioners on different nodes compete for a claim that any of them could provision. */
    readonly nodeRace?: Omit<NodeDeployment, 'name' | 'segments'>
  }
  readonly sourceProtection?: SourceProtectionOptions
  readonly attaching?: AttacherOptions
  readonly volumeChanges?: DriverChangeOptions
  readonly capacity?: CapacityOptions & {
    /** The client for CSIStorageCapacity objects, which has a separate rate limit. Default: the provisioner's client. */
    readonly client?: Client
  }
  readonly volumeHealth?: VolumeHealthOptions
  /** The pod or host that events name as their source, if these controllers run in a separate process. */
  readonly instance?: string
}

export function createDriverControllers(deps: DriverControllersDeps, parts: DriverParts): Controllers {
  const { clock, random, log, metrics, driver, facts, node, gates, election, driverMetrics } = deps
  const clientOf: ClientOf = deps.clientOf ?? (() => deps.client)
  const mayListNodes = deps.mayListNodes ?? (parts.provisioning !== undefined && hasTopology(facts))
  const silentNodes = mayListNodes && !node ? createSilentNodes(deps.caches) : undefined
  const commonDepsFor = (component: InProcessComponent) => ({
    client: clientOf(component),
    caches: deps.caches,
    clock,
    random,
    log,
    metrics,
    election,
    workerBudget: deps.workerBudget,
    silentNodes,
  })
  const csi = { driver, facts }
  const recorders: EventRecorder[] = []

  function addRecorder(client: Client, component: string): EventRecorder {
    const recorder = createEventRecorder({ client, clock, random, log, component, instance: parts.instance })
    recorders.push(recorder)
    return recorder
  }

  function createChangeControllers(options: DriverChangeOptions): Controllers {
    const common = commonDepsFor('resizer')
    const events = addRecorder(common.client, `external-resizer ${facts.name}`) // the component name that upstream uses
    return createVolumeChanges({
      ...common,
      ...csi,
      node,
      events,
      gates,
      modifyingMetrics: driverMetrics.modifying,
      options,
    })
  }

  function createProvisioning({
    csi: csiOptions,
    nodeRace,
    ...options
  }: NonNullable<DriverParts['provisioning']>): Controllers {
    const { instance } = parts
    const common = commonDepsFor('provisioner')
    const events = instance ? addRecorder(common.client, `${facts.name}_${instance}_${randomUuid(random)}`) : undefined
    const { leaseNamespace: namespace } = deps
    const isJournaled = election !== undefined && namespace !== undefined && node === undefined
    const deployment = node && nodeRace ? { node: { ...node, ...nodeRace } } : {}
    return createProvisioningControllers({
      ...common,
      provisioner: createCsiProvisioner({
        ...common,
        ...csi,
        events,
        options: { ...csiOptions, gates, ...deployment },
      }),
      provisioningMetrics: driverMetrics.provisioning,
      runningProvisioners: deps.runningProvisioners,
      groupsCommits: deps.runningProvisioners === undefined, // a separate process, whose commits are requests over HTTP
      events,
      options: {
        bindsOnSave: true,
        gates,
        ...(isJournaled ? { intentLease: { namespace, name: intentLease(facts.name) } } : {}),
        ...options,
      },
    })
  }

  function createCapacity({ client, ...options }: NonNullable<DriverParts['capacity']>) {
    const common = commonDepsFor('provisioner')
    return createCapacityControllers({
      ...common,
      ...csi,
      ...(client ? { client } : {}),
      mode: node ? { is: 'local', node: node.name, segments: node.segments } : { is: 'central' },
      capacityMetrics: driverMetrics.capacity,
      events: addRecorder(common.client, facts.name),
      options,
    })
  }

  function createHealth(options: VolumeHealthOptions): Controllers {
    const { client } = deps
    const events = addRecorder(client, `csi-pv-monitor-controller-${facts.name}`) // the component name that upstream uses
    return createVolumeHealth({
      ...commonDepsFor('provisioner'),
      client,
      ...csi,
      node,
      events,
      healthMetrics: driverMetrics.volumeHealth,
      options,
    })
  }

  // The order of creation is the order in which caches start.
  const changeControllers = parts.volumeChanges && createChangeControllers(parts.volumeChanges)
  const provisioning = parts.provisioning && createProvisioning(parts.provisioning)
  const protection =
    parts.sourceProtection && createSourceProtection(commonDepsFor('provisioner'), parts.sourceProtection)
  const attacher =
    parts.attaching &&
    createAttacher({ ...commonDepsFor('attacher'), ...csi, options: { nodeName: node?.name, ...parts.attaching } })
  const capacity = parts.capacity && createCapacity(parts.capacity)
  const health = parts.volumeHealth && createHealth(parts.volumeHealth)
  const controllers = [provisioning, protection, attacher, changeControllers, capacity, health]
  return withRecorders(
    controllers.filter((controller) => controller !== undefined),
    recorders,
  )
}

type Controllers = Runnable & { readonly queues: readonly WorkQueue[] }
