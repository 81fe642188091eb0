// Waits until a CSI driver responds on its socket, then runs its controllers, for `stowage up` and `stowage controllers`. A
// missing driver does not block the rest of the process.
import type { FeatureGates } from '../api/feature-gates.ts'
import type { RunningProvisioners } from '../controllers/binding/index.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import {
  type CallObserver,
  type ConnectOptions,
  type CsiConnection,
  connectDriver,
  serializeCalls,
} from '../csi/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import type { LeaderElection } from '../runtime/index.ts'
import { type DiscoveredDriver, discoverDriver } from './discover-driver.ts'
import { createDriverControllers, type DriverMetrics, type DriverParts } from './driver-controllers.ts'
import type { ClientOf } from './server/component-clients.ts'

export interface RunDriverControllersOptions extends ControllerDeps {
  readonly address: string
  /** The only node the driver serves. Absent if it serves all nodes. */
  readonly node?: string
  readonly gates: FeatureGates
  readonly csiMetrics: CallObserver
  readonly driverMetrics: DriverMetrics
  /** The list that a binder in this process reads. */
  readonly runningProvisioners: RunningProvisioners
  readonly throttle?: ThrottleOptions
  readonly election?: LeaderElection
  /** Returns a controller's client. Default: `client` for all. */
  readonly clientOf?: ClientOf
  /** Default: a unix socket. */
  readonly connect?: Connect
}

/** Connects to the driver at an address. */
export type Connect = (options: ConnectOptions) => CsiConnection

/** The delays are short because all nodes are on this machine. */
const NODE_RACE = { immediateBinding: true, baseDelayMs: 200, maxDelayMs: 5_000 }
const CAPACITY_NAMESPACE = 'kube-system'
const CAPACITY_WORKERS = 10
/** The same as the number of provisioning workers. */
const CHANGE_WORKERS = 100

export async function runDriverControllers(options: RunDriverControllersOptions, signal: AbortSignal): Promise<void> {
  const { address, node: nodeName, clock, log, csiMetrics, throttle, connect = connectDriver, ...deps } = options
  const driver = connect({ address, clock, log, metrics: csiMetrics })
  try {
    const discoveredDriver = await discoverDriver(driver, { clock, log, signal, nodeName, retry: 'always' }).catch(
      (error) => {
        if (signal.aborted) return undefined
        throw error
      },
    )
    if (!discoveredDriver) return
    const { name, version, controller } = discoveredDriver.facts
    if (controller.has('CREATE_DELETE_VOLUME')) log.info({ driver: name, version, address }, 'CSI driver found')
    else {
      log.warn(
        { driver: name, address },
        'the CSI driver cannot create volumes (no CREATE_DELETE_VOLUME); existing volumes are still attached and changed',
      )
    }
    const controllers = createDriverControllers(
      { ...deps, clock, log, ...discoveredDriver, driver: serializeCalls(driver), mayListNodes: true },
      partsFor(discoveredDriver, throttle),
    )
    try {
      await controllers.run(signal)
    } finally {
      for (const queue of controllers.queues) deps.metrics?.queues.delete(queue)
    }
  } finally {
    driver.close()
  }
}

function partsFor({ facts, node }: DiscoveredDriver, throttle: ThrottleOptions | undefined): DriverParts {
  return {
    provisioning: facts.controller.has('CREATE_DELETE_VOLUME')
      ? {
          prefixesQueueNames: true,
          // A driver for all nodes may not be registered on any of them yet.
          csi: { immediateTopology: false },
          nodeRace: node && NODE_RACE,
        }
      : undefined,
    attaching: { prefixesQueueNames: true },
    volumeChanges: { workers: CHANGE_WORKERS, throttle },
    capacity: facts.controller.has('GET_CAPACITY')
      ? { namespace: CAPACITY_NAMESPACE, workers: CAPACITY_WORKERS, prefixesQueueNames: true }
      : undefined,
  }
}
