// A CSI driver that `stowage up` was pointed at: waits until it answers, then makes, changes and deletes its volumes in
// this process. A driver that is late, gone or unable is waited for or left alone; the rest of the system does not notice.
import type { FeatureGates } from '../api/feature-gates.ts'
import { createAttacher } from '../controllers/attaching/index.ts'
import { type CapacityMetrics, createCapacityControllers } from '../controllers/capacity/index.ts'
import type { ModifyingMetrics } from '../controllers/modifying/index.ts'
import { createCsiProvisioner } from '../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers, type ProvisioningMetrics } from '../controllers/provisioning/index.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import {
  type CallObserver,
  type ConnectOptions,
  type CsiConnection,
  connectDriver,
  driverFacts,
  serializeCalls,
  waitUntilReady,
} from '../csi/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createEventRecorder, type LeaderElection } from '../runtime/index.ts'
import { changesComponent, createVolumeChanges } from './volume-changes.ts'

export interface DriverSocket extends ControllerDeps {
  readonly address: string
  /** The node it serves alone; absent: it serves all. */
  readonly node?: string
  readonly gates: FeatureGates
  readonly csiMetrics: CallObserver
  readonly provisioningMetrics: ProvisioningMetrics
  readonly capacityMetrics: CapacityMetrics
  readonly modifyingMetrics: ModifyingMetrics
  readonly pace?: ThrottleOptions
  readonly election?: LeaderElection
  /** Default: a unix socket. */
  readonly connect?: Connect
}

/** How a driver is reached at its address. */
export type Connect = (options: ConnectOptions) => CsiConnection

/** The driver is asked what it is until it answers. */
const ASK_AGAIN_MS = 1_000
/** Nodes of one machine need not be polite to each other for long. */
const NODE_RACE = { immediateBinding: true, baseDelayMs: 200, maxDelayMs: 5_000 }
const CAPACITY_NAMESPACE = 'kube-system'
const CAPACITY_WORKERS = 10
/** As many as there are for claims that want a volume. */
const CHANGE_WORKERS = 100

export async function runDriverSocket(of: DriverSocket, signal: AbortSignal): Promise<void> {
  const {
    address,
    node: name,
    clock,
    log,
    gates,
    csiMetrics,
    provisioningMetrics,
    capacityMetrics,
    modifyingMetrics,
    pace,
    election,
    connect = connectDriver,
    ...deps
  } = of
  const driver = connect({ address, clock, log, metrics: csiMetrics })
  try {
    const facts = await factsOf()
    if (!facts) return
    const makesVolumes = facts.controller.has('CREATE_DELETE_VOLUME')
    if (makesVolumes) {
      log.info({ driver: facts.name, version: facts.version, address }, 'providing volumes of a CSI driver')
    } else {
      const message =
        'the driver cannot make volumes (no CREATE_DELETE_VOLUME): those that are there are attached and changed'
      log.warn({ driver: facts.name, address }, message)
    }
    const common = { ...deps, clock, log }
    const calls = { driver: serializeCalls(driver), facts }
    const node = name === undefined ? undefined : { ...NODE_RACE, name, segments: await segmentsOf() }
    const led = election ? { election } : {}
    const component = changesComponent(facts)
    const events = createEventRecorder({ client: deps.client, clock, random: deps.random, log, component })
    const changes = createVolumeChanges({
      ...common,
      ...led,
      ...calls,
      events,
      gates,
      modifyingMetrics,
      ...(node ? { node } : {}),
      options: { workers: CHANGE_WORKERS, ...(pace ? { pace } : {}) },
    })
    const provide = () =>
      createProvisioningControllers({
        ...common,
        ...led,
        provisioner: createCsiProvisioner({
          ...common,
          ...calls,
          // Without a node of its own there may be none that the driver was registered on.
          options: { gates, immediateTopology: false, ...(node ? { node } : {}) },
        }),
        provisioningMetrics,
        options: { isOneOfSeveral: true, bindsAtOnce: true, gates },
      })
    const controllers = [
      ...(makesVolumes ? [provide()] : []),
      createAttacher({ ...common, ...led, ...calls, options: { isOneOfSeveral: true } }),
      changes,
      ...(facts.controller.has('GET_CAPACITY')
        ? [
            createCapacityControllers({
              ...common,
              ...led,
              ...calls,
              mode: node ? { is: 'local', node: node.name, segments: node.segments } : { is: 'central' },
              options: { namespace: CAPACITY_NAMESPACE, workers: CAPACITY_WORKERS, isOneOfSeveral: true },
              capacityMetrics,
            }),
          ]
        : []),
    ]
    const workOver = new AbortController()
    const telling = events.run(workOver.signal)
    try {
      await Promise.all(controllers.map((controller) => controller.run(signal)))
    } finally {
      workOver.abort() // what the last of them had to say is still told
      await telling
    }
  } finally {
    driver.close()
  }

  async function segmentsOf(): Promise<Readonly<Record<string, string>>> {
    const { accessibleTopology } = await driver.node.nodeGetInfo({}, { signal })
    return accessibleTopology?.segments ?? {}
  }

  async function factsOf() {
    let told = ''
    while (!signal.aborted) {
      try {
        await waitUntilReady(driver, { clock, log, signal })
        return await driverFacts(driver, signal)
      } catch (error) {
        if (signal.aborted) break
        const because = error instanceof Error ? error.message : String(error)
        if (because !== told) log.warn({ address, because }, 'the driver does not say what it is; asking every second')
        told = because
        await clock.sleep(ASK_AGAIN_MS, signal).catch(() => {})
      }
    }
    return undefined
  }
}
