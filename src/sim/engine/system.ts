// The system under test: the production server, controllers, scheduler and node agents as simulated processes,
// with several CSI drivers. Checking is in ../checkers.
import type { Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { FEATURE_GATES, type FeatureGate, type FeatureGates } from '../../api/feature-gates.ts'
import type { Client } from '../../client/index.ts'
import type { FakeSettings } from '../../csi/fake/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import { createOperationRegistry, type OperationRegistry } from '../../runtime/index.ts'
import { type Cluster, type ClusterOptions, createCluster } from '../environment/cluster.ts'
import { createSimDriver, type SimDriver } from '../environment/driver.ts'
import type { Env, SimProcess } from '../environment/process.ts'
import type { Simulation } from '../environment/simulation.ts'
import { createStockAnswers, type StockAnswers } from '../environment/stock-answers.ts'
import { DRIVERS, type DriverName, NODES, nodeOfId, nodeOfPool, settingsOf } from '../plan/catalog.ts'
import type { Setup } from '../plan/plan.ts'
import { createMachine, type Machine } from './machine.ts'
import type { HostDeps, ProcessHost } from './process-host.ts'
import { addProcesses } from './processes.ts'

export interface System {
  readonly setup: Setup
  readonly cluster: Cluster
  /** Present if the server responds like a stock API server. */
  readonly stockAnswers?: StockAnswers
  readonly drivers: ReadonlyMap<DriverName, SimDriver>
  readonly nodes: ReadonlyMap<string, SystemNode>
  /** By name: `server`, `control-1`, `agent-n1`, `driver net.sim`, `provisioner-net.sim-1` … */
  readonly processes: ReadonlyMap<string, SimProcess>
  /** The metrics registries of all incarnations of all processes. */
  readonly registries: readonly {
    readonly process: string
    readonly incarnation: number
    readonly registry: Registry
  }[]
  /** The operation registries of the newest incarnations, by the name of their process. */
  readonly operationRegistries: ReadonlyMap<string, OperationRegistry>
  /** Every driver call from the perspective of its caller. */
  readonly calls: readonly DriverCall[]
  /** Calls `listener` when a driver call starts, and when its caller receives the result. */
  onCall(listener: (call: DriverCall, phase: 'begins' | 'ends') => void): void
  /** Calls `listener` before a machine is switched on or off, suspended or resumed. */
  beforeMachineChange(listener: () => void): void
  /** The sizes of the volumes in the storage of the in-process plugin, by name. */
  readonly pluginVolumes: ReadonlyMap<string, bigint>
  /** Calls `listener` when the plugin of a process deletes a volume. */
  onPluginDelete(listener: (process: string, volumeName: string) => void): void
  /** Calls `listener` when a process ends by itself. */
  onEnd(listener: (process: string, error: unknown) => void): void
  readonly gates: FeatureGates
  /** Takes effect at the next start of each process. */
  setGate(gate: string, isOn: boolean): void
  /** Adds and starts the clients of the server: controllers, scheduler and node agents. The server already runs. */
  start(): void
  /** Ends all faults, starts every process, and waits until the server is up. */
  heal(): Promise<void>
  /** Ends all processes and releases their memory. */
  dispose(): void
}

export interface SystemOptions {
  /** Wraps the client of each incarnation of a process, for checkers that record its requests. */
  readonly wrapClient?: (process: string, client: Client) => Client
  /** Wraps the client below the commit mode, where every write is one request. */
  readonly wrapNetworkClient?: (env: Env, client: Client) => Client
  readonly wrapDriver?: (env: Env, driver: CsiDriver) => CsiDriver
  readonly wrapServer?: ClusterOptions['wrapServer']
  /** Wraps the operation registry of each incarnation of a process. */
  readonly wrapOperations?: (operations: OperationRegistry) => OperationRegistry
  /** Adds the processes. Default: all processes of the system (processes.ts). */
  readonly addProcesses?: (deps: HostDeps) => ProcessHost
  /** Settings of drivers that differ from the catalog. */
  readonly driverSettings?: Partial<Record<DriverName, FakeSettings>>
}

export interface SystemNode {
  readonly name: string
  readonly isOn: boolean
  /** Whether the machine is on and not suspended: its pods can write to their volumes. */
  readonly isRunning: boolean
  /** Whether the machine runs and reaches the server. */
  readonly isReachable: boolean
  /** Whether the machine stays off when all other faults end. */
  readonly isLostForGood: boolean
  /** Mounted paths, with the volume (`driver^handle`) if known. */
  mounts(): readonly { readonly path: string; readonly volume: string | undefined }[]
  cutPower(): void
  boot(): void
  /** Cuts the agent off from the server. Its processes and mounts stay. */
  split(): void
  rejoin(): void
  /** Stops all processes of the machine for `ms`, or until `resume`. Its mounts stay. */
  suspend(ms: number): void
  resume(): void
  loseForGood(): void
}

export interface DriverCall {
  readonly process: string
  readonly incarnation: number
  readonly driver: DriverName
  readonly method: string
  /** The volume's id, or its name if it has no id yet. */
  readonly volume: string
  readonly request: Message
  readonly startMs: number
  readonly endMs: number | undefined
  /** `OK` or the error code that the caller received. */
  readonly outcome: string | undefined
}

/** A short history, so that some watches resume too late. */
const HISTORY = { keepMs: 180_000, entriesMax: 300 }

export async function createSystem(simulation: Simulation, setup: Setup, options: SystemOptions = {}): Promise<System> {
  const disabledGates = new Set<FeatureGate>()
  const gates: FeatureGates = { enabled: (gate) => !disabledGates.has(gate) }
  const copyGates = (): FeatureGates => {
    const gatesAtStart = new Set(disabledGates)
    return { enabled: (gate) => !gatesAtStart.has(gate) }
  }
  const { expansionQuota, apiServers, identities } = setup
  const cluster = await createCluster(simulation, HISTORY, {
    expansionQuota,
    apiServers,
    identities,
    gates: copyGates,
    wrapServer: options.wrapServer,
  })
  const answers = setup.answers === 'stock' ? { stockAnswers: createStockAnswers(simulation) } : {}
  const names = NODES.slice(0, setup.nodes)
  const machines = new Map<string, Machine>()
  const drivers = new Map<DriverName, SimDriver>()
  const isOffline = (pool: string) => machines.get(nodeOfPool(pool))?.isReachable === false
  for (const name of DRIVERS) {
    const hooks = {
      onNode: (id: string, method: string, request: object) =>
        machines.get(nodeOfId(id))?.applyCall(name, method, request),
      bootOf: (id: string) => machines.get(nodeOfId(id))?.boots ?? 0,
      ...(setup.nodeStorage && name === 'local.sim' ? { isOffline } : {}),
    }
    const settings = options.driverSettings?.[name] ?? settingsOf(name, names, setup)
    drivers.set(name, createSimDriver(simulation, `driver ${name}`, settings, hooks))
  }
  const machineListeners: (() => void)[] = []
  const beforeChange = () => {
    for (const listener of machineListeners) listener()
  }
  for (const name of names) machines.set(name, createMachine(simulation, name, drivers, cluster.network, beforeChange))

  const processes = new Map<string, SimProcess>()
  const registries: { process: string; incarnation: number; registry: Registry }[] = []
  const operationRegistries = new Map<string, OperationRegistry>()
  const calls: DriverCall[] = []
  const callListeners: ((call: DriverCall, phase: 'begins' | 'ends') => void)[] = []
  const endListeners: ((process: string, error: unknown) => void)[] = []
  const pluginVolumes = new Map<string, bigint>()
  const deleteListeners: ((process: string, volumeName: string) => void)[] = []
  let host: ProcessHost | undefined

  processes.set('server', cluster.server)
  for (const [name, instance] of cluster.replicas) processes.set(name, instance)
  for (const [name, { process }] of drivers) processes.set(`driver ${name}`, process)

  return {
    setup,
    cluster,
    ...answers,
    drivers,
    nodes: machines,
    processes,
    registries,
    operationRegistries,
    calls,
    gates,
    onCall: (listener) => void callListeners.push(listener),
    beforeMachineChange: (listener) => void machineListeners.push(listener),
    onEnd: (listener) => void endListeners.push(listener),
    pluginVolumes,
    onPluginDelete: (listener) => void deleteListeners.push(listener),
    setGate(gate, isOn) {
      const knownGate = FEATURE_GATES.find((candidate) => candidate === gate)
      if (!knownGate) throw new Error(`There is no feature gate "${gate}". Known gates: ${FEATURE_GATES.join(', ')}.`)
      if (isOn) disabledGates.delete(knownGate)
      else disabledGates.add(knownGate)
    },
    start() {
      host ??= (options.addProcesses ?? addProcesses)({
        simulation,
        cluster,
        ...answers,
        drivers,
        machines,
        setup,
        gates: copyGates,
        pluginVolumes,
        recordPluginDelete: (process, volumeName) => {
          for (const listener of deleteListeners) listener(process, volumeName)
        },
        wrapClient: options.wrapClient ?? ((_process, client) => client),
        wrapNetworkClient: options.wrapNetworkClient ?? ((_env, client) => client),
        wrapDriver: options.wrapDriver ?? ((_env, driver) => driver),
        registryFor(process, incarnation) {
          const registry = new Registry()
          registries.push({ process, incarnation, registry })
          return registry
        },
        operationsFor({ name, clock }) {
          const operations = createOperationRegistry({ process: name, clock })
          operationRegistries.set(name, options.wrapOperations?.(operations) ?? operations)
          return operationRegistries.get(name)!
        },
        recordCall(call) {
          const openCall = { ...call, endMs: undefined, outcome: undefined }
          calls.push(openCall)
          for (const listener of callListeners) listener(openCall, 'begins')
          return (outcome) => {
            Object.assign(openCall, { endMs: simulation.nowMs, outcome })
            for (const listener of callListeners) listener(openCall, 'ends')
          }
        },
        recordEnd: (process, error) => {
          for (const listener of endListeners) listener(process, error)
        },
      })
      for (const [name, instance] of host.processes) processes.set(name, instance)
    },
    async heal() {
      for (const machine of machines.values()) machine.heal()
      for (const driver of drivers.values()) {
        delete driver.findRule
        driver.unfreezeCapacity()
        driver.heal()
      }
      answers.stockAnswers?.heal()
      await cluster.heal()
    },
    dispose() {
      for (const instance of processes.values()) instance.dispose()
    },
  }
}
