// Runs the components that share the process of an API server: the nodes of this machine and the controllers, each with the
// rights of its own user.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { ApiServer, Journal, OperationBoard } from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { processName } from '../../base/process-identity.ts'
import type { Provisioner } from '../../controllers/provisioning/index.ts'
import type { ThrottleOptions } from '../../controllers/volume-changes/index.ts'
import type { PodOptions } from '../../nodeagent/index.ts'
import { createClientMetrics, createOperationRegistry } from '../../runtime/index.ts'
import { CONTROLLERS, type DriverEndpoint, runControllers } from '../controllers.ts'
import type { AccessControl } from './access-control.ts'
import { createComponentClients } from './component-clients.ts'
import { type StartedNodes, startNodes } from './local-nodes.ts'
import type { NodeNames } from './node-names.ts'
import { runServerControllers } from './server-controllers.ts'

export interface ComponentsOptions {
  readonly server: ApiServer
  /** Lists the operations of the components. */
  readonly operations: OperationBoard
  /** Records the attempts and driver calls of the components. Undefined if there is no journal. */
  readonly journal: Journal | undefined
  readonly serverUrl: string
  readonly access: Pick<AccessControl, 'credentials' | 'nodeIdentity' | 'roleAuthorizer' | 'accountTokens'>
  readonly gates: FeatureGates
  /** Whether other servers may run controllers on the same store. */
  readonly isShared: boolean
  readonly nodes: {
    readonly count: number
    readonly nameOf: NodeNames
    readonly dir: string
    readonly poolBytes: number | undefined
    readonly podOptions: PodOptions
    readonly volumesDirs: readonly string[]
    /** Names of nodes of an earlier start that do not run now. */
    readonly idle: readonly string[]
  }
  readonly hasControllers: boolean
  readonly hasScheduler: boolean
  readonly capacityMissingForMs: number | undefined
  readonly capacityReservation: boolean
  readonly throttle: ThrottleOptions | undefined
  /** Sockets of CSI drivers whose controllers run in this process. */
  readonly driverSockets: readonly string[]
  readonly inProcessProvisioners: readonly Provisioner[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called when all nodes are ready. */
  onNodes(nodes: StartedNodes): void
}

export interface RunningComponents {
  /** Settles when a component ends, which stops the server. Never settles if there is none. */
  readonly firstEnd: Promise<unknown>
  /**
   * Must be called after the signal is aborted. Returns the promises that a stop waits for, by the name of the part.
   */
  stop(): Readonly<Record<string, Promise<unknown>>>
}

export function startComponents(options: ComponentsOptions): RunningComponents {
  const { server, serverUrl, access, gates, isShared, nodes, clock, random, log, signal } = options
  const { registry } = server.metrics
  const operations = createOperationRegistry({ process: processName('stowage'), clock })
  operations.subscribe(options.operations.applyLocal)
  const { journal } = options
  if (journal) operations.subscribeActivities((activity) => journal.addActivities(operations.process, [activity]))
  const common = { registry, clock, random, log, signal, operations }
  const ends: Promise<unknown>[] = []
  const controllers: Record<string, Promise<unknown>> = {}
  const drivers: DriverEndpoint[] = [...new Set(options.driverSockets)].map((address) => ({ address }))
  let stopNodes = async () => {}
  if (nodes.count > 0) {
    const clientOf = (node: string) => access.nodeIdentity.clientOf(server, node)
    const runningNodes = startNodes({ ...common, ...nodes, clientOf, serverUrl })
    void runningNodes.readyNodes.then((ready) => options.onNodes({ ...ready, idle: nodes.idle }))
    stopNodes = runningNodes.stop
    ends.push(runningNodes.failure)
    drivers.unshift(...runningNodes.drivers)
  }
  // On a shared store, `stowage server` runs the controllers that need its keys, because `stowage controllers` cannot.
  if (options.hasControllers || isShared) {
    const { pki } = access.credentials
    const metrics = createClientMetrics(registry, operations)
    const clientOf = createComponentClients({ ...common, server, authorizer: access.roleAuthorizer, metrics })
    const runClusterControllers = () =>
      runControllers({
        ...common,
        client: clientOf('manager'),
        clientOf,
        metrics,
        names: CONTROLLERS.filter((name) => options.hasScheduler || name !== 'scheduler'),
        capacityMissingForMs: options.capacityMissingForMs,
        throttle: options.throttle,
        rootCa: pki.caCert,
        isShared,
        gates,
        capacityReservation: options.capacityReservation,
        drivers,
        inProcessProvisioners: options.inProcessProvisioners,
        onHealth: (health) => {
          // Not part of readiness: the API server serves requests without its controllers.
          const problem = async () => health['/healthz/leader-election']?.()
          if (isShared) server.health.addCheck('leader-election', problem, { isReadiness: false })
        },
      })
    if (options.hasControllers) controllers.controllers = runClusterControllers()
    controllers.serverControllers = runServerControllers({
      ...common,
      clientOf,
      authorizer: access.nodeIdentity.authorizer,
      pki,
      accountTokens: access.accountTokens,
    })
    ends.push(...Object.values(controllers))
  }
  return {
    firstEnd: ends.length > 0 ? Promise.race(ends) : new Promise(() => {}),
    stop: () => ({ ...controllers, nodes: stopNodes() }),
  }
}
