// Runs the components in the API server process: the nodes of this machine, the CSI drivers of --driver and the controllers.
// Each component connects as its own user.
import { join } from 'node:path'
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { ApiServer, Journal, OperationBoard } from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { processName } from '../../base/process-identity.ts'
import type { Provisioner } from '../../controllers/provisioning/index.ts'
import type { ThrottleOptions } from '../../controllers/volume-changes/index.ts'
import type { PodOptions } from '../../nodeagent/index.ts'
import { createClientMetrics, createOperationRegistry } from '../../runtime/index.ts'
import type { LostVolumePolicy } from '../../volumes/lost-volume-policy.ts'
import type { Placement } from '../../volumes/placement.ts'
import { CONTROLLERS, type DriverEndpoint, runControllers } from '../controllers.ts'
import type { AccessControl } from './access-control.ts'
import { createComponentClients } from './component-clients.ts'
import type { DriverSource } from './drivers/driver-source.ts'
import { type DriverHost, type DriverReport, startDrivers } from './drivers/start-drivers.ts'
import { type StartedNodes, startNodes } from './nodes/local-nodes.ts'
import { localStreams } from './nodes/local-streams.ts'
import { directoryOf, type NodeNames } from './nodes/node-names.ts'
import { runServerControllers } from './server-controllers.ts'
import { createUsageReader } from './usage-reader.ts'

export interface ComponentsOptions {
  readonly server: ApiServer
  /** Collects the operations of the components. */
  readonly operationBoard: OperationBoard
  /** Records the attempts and driver calls of the components. Undefined if there is no journal. */
  readonly journal: Journal | undefined
  readonly serverUrl: string
  readonly access: Pick<AccessControl, 'credentials' | 'nodeIdentity' | 'roleAuthorizer' | 'accountTokens'>
  readonly gates: FeatureGates
  /** Whether other servers may run controllers on the same store. */
  readonly isStoreShared: boolean
  readonly nodes: {
    readonly count: number
    readonly nameOf: NodeNames
    readonly dir: string
    readonly poolBytes: number | undefined
    readonly maxVolumesPerNode: number | undefined
    readonly podOptions: PodOptions
    readonly volumesDirs: readonly string[]
    /** Names of nodes from an earlier start that are not running now. */
    readonly idle: readonly string[]
  }
  readonly runsControllers: boolean
  readonly runsScheduler: boolean
  readonly capacityMissingForMs: number | undefined
  readonly reservesCapacity: boolean
  readonly defaultPlacement: Placement | undefined
  readonly lostVolumePolicy: LostVolumePolicy | undefined
  readonly nodeMonitorGraceMs: number | undefined
  readonly throttle: ThrottleOptions | undefined
  /** The CSI drivers given with --driver. */
  readonly drivers: readonly DriverSource[]
  readonly inProcessProvisioners: readonly Provisioner[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called when all nodes are ready. */
  onNodes(nodes: StartedNodes): void
  /** Called when a driver given with --driver is ready, has a problem or has recovered. */
  onDriver(report: DriverReport): void
}

export interface RunningComponents {
  /** Settles when the first component exits, which stops the server. Never settles if there are no components. */
  readonly firstExit: Promise<unknown>
  /**
   * Must be called after the signal is aborted. Returns the promises that the server waits for before it exits, by component
   * name.
   */
  stop(): Readonly<Record<string, Promise<unknown>>>
}

export function startComponents(options: ComponentsOptions): RunningComponents {
  const { server, serverUrl, access, gates, isStoreShared, nodes, clock, random, log, signal } = options
  const { registry } = server.metrics
  const operationRegistry = createOperationRegistry({ process: processName('stowage'), clock })
  operationRegistry.subscribe(options.operationBoard.applyLocal)
  options.journal?.recordActivitiesOf(operationRegistry)
  const common = { registry, clock, random, log, signal, operations: operationRegistry }
  const exits: Promise<unknown>[] = []
  const controllers: Record<string, Promise<unknown>> = {}
  const drivers: DriverEndpoint[] = []
  let hosts: readonly DriverHost[] = []
  let stopNodes = async () => {}
  let stopDrivers = async () => {}
  if (nodes.count > 0) {
    const clientOf = (node: string) => access.nodeIdentity.clientOf(server, node)
    const { pki } = access.credentials
    const streamsOf = (nodeName: string) => localStreams({ nodeName, pki, isStoreShared, clock })
    const runningNodes = startNodes({
      ...common,
      ...nodes,
      leaseMs: options.nodeMonitorGraceMs,
      clientOf,
      streamsOf,
      serverUrl,
    })
    void runningNodes.readyNodes.then((ready) => options.onNodes({ ...ready, idle: nodes.idle }))
    stopNodes = runningNodes.stop
    exits.push(runningNodes.failure)
    drivers.push(...runningNodes.drivers)
    hosts = runningNodes.hosts
  }
  // On a shared store, `stowage server` also runs the controllers that need its keys, because `stowage controllers` cannot.
  if (options.runsControllers || isStoreShared) {
    const { pki } = access.credentials
    const metrics = createClientMetrics(registry, operationRegistry)
    const clientOf = createComponentClients({ ...common, server, authorizer: access.roleAuthorizer, metrics })
    if (options.drivers.length > 0) {
      const fallbackHost = { name: nodes.nameOf(1), dir: join(nodes.dir, directoryOf(1)) }
      const [firstHost = fallbackHost, ...otherHosts] = hosts
      const runningDrivers = startDrivers({
        ...common,
        sources: options.drivers,
        hosts: [firstHost, ...otherHosts],
        isStoreShared,
        client: clientOf('driver-setup'),
        onReport: options.onDriver,
      })
      drivers.push(...runningDrivers.endpoints)
      stopDrivers = runningDrivers.stop
    }
    const runClusterControllers = () =>
      runControllers({
        ...common,
        client: clientOf('manager'),
        clientOf,
        metrics,
        names: CONTROLLERS.filter((name) => options.runsScheduler || name !== 'scheduler'),
        capacityMissingForMs: options.capacityMissingForMs,
        throttle: options.throttle,
        rootCa: pki.caCert,
        readUsage: createUsageReader(registry, clock),
        isStoreShared,
        gates,
        reservesCapacity: options.reservesCapacity,
        defaultPlacement: options.defaultPlacement,
        lostVolumePolicy: options.lostVolumePolicy,
        nodeMonitorGraceMs: options.nodeMonitorGraceMs,
        drivers,
        inProcessProvisioners: options.inProcessProvisioners,
        onHealth: (health) => {
          // Not part of readiness: the API server serves requests without its controllers.
          const problem = async () => health['/healthz/leader-election']?.()
          if (isStoreShared) server.health.addCheck('leader-election', problem, { isReadiness: false })
        },
      })
    if (options.runsControllers) controllers.controllers = runClusterControllers()
    controllers.serverControllers = runServerControllers({
      ...common,
      clientOf,
      authorizer: access.nodeIdentity.authorizer,
      pki,
      accountTokens: access.accountTokens,
    })
    exits.push(...Object.values(controllers))
  }
  return {
    firstExit: exits.length > 0 ? Promise.race(exits) : new Promise(() => {}),
    stop() {
      const parts = { ...controllers, nodes: stopNodes() }
      return { ...parts, drivers: Promise.allSettled(Object.values(parts)).then(stopDrivers) }
    },
  }
}
