// Runs production code as simulated processes: gives each incarnation its clock, its client and its
// connections to the drivers, records every driver call, and restarts processes that exit.
// processes.ts adds the processes of the whole system, ../crash-points those of a few controllers.
import { setMaxListeners } from 'node:events'
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { Client } from '../../client/index.ts'
import { patchByUpdate } from '../../client/patch-by-update.ts'
import { callDriver } from '../../csi/driver.ts'
import { type ConnectOptions, type CsiConnection, type CsiDriver, CsiError, createCsiDriver } from '../../csi/index.ts'
import type { OperationRegistry } from '../../runtime/index.ts'
import type { Cluster } from '../environment/cluster.ts'
import type { SimDriver } from '../environment/driver.ts'
import { createNonAtomicClient } from '../environment/one-by-one.ts'
import type { Env, SimProcess } from '../environment/process.ts'
import type { Simulation } from '../environment/simulation.ts'
import type { StockAnswers } from '../environment/stock-answers.ts'
import type { DriverName } from '../plan/catalog.ts'
import type { Setup } from '../plan/plan.ts'
import type { Machine } from './machine.ts'
import type { DriverCall } from './system.ts'

export interface HostDeps {
  readonly simulation: Simulation
  readonly cluster: Cluster
  readonly drivers: ReadonlyMap<DriverName, SimDriver>
  readonly machines: ReadonlyMap<string, Machine>
  readonly setup: Setup
  /** Present if the server responds like a stock API server. */
  readonly stockAnswers?: StockAnswers
  gates(): FeatureGates
  /** Wraps the client above the commit mode, for checkers. */
  wrapClient(process: string, client: Client): Client
  /** Wraps the client below the commit mode, where every write is one request. */
  wrapNetworkClient(env: Env, client: Client): Client
  wrapDriver(env: Env, driver: CsiDriver): CsiDriver
  registryFor(process: string, incarnation: number): Registry
  /** Creates the registry of the operations of an incarnation, which replaces that of the previous one. */
  operationsFor(env: Env): OperationRegistry
  /** The storage of the in-process plugin, by volume name. */
  readonly pluginVolumes: Map<string, bigint>
  /** Called when the plugin of a process deletes a volume. */
  recordPluginDelete(process: string, volumeName: string): void
  /** Records the start of a call; the returned function records its end. */
  recordCall(call: Omit<DriverCall, 'endMs' | 'outcome'>): (outcome: string) => void
  recordEnd(process: string, error: unknown): void
}

/** The environment of one incarnation of a process. */
export interface ProcessContext {
  readonly env: Env
  readonly client: Client
  readonly registry: Registry
  readonly operations: OperationRegistry
  readonly connect: (options: ConnectOptions, nodeId?: string) => CsiConnection
}

export interface ProcessHost {
  readonly processes: ReadonlyMap<string, SimProcess>
  /** Adds and starts a process. */
  add(name: string, main: (context: ProcessContext) => Promise<void>, options?: ProcessOptions): SimProcess
}

export interface ProcessOptions {
  /** Whether the process commits in transactions and gets a Stowage server's responses. Default: if `commits` is `atomic`. */
  readonly isAtomic?: boolean
  /** The node as whose user the process acts. Default: a user with all permissions. */
  readonly nodeName?: string
}

/** A supervisor restarts processes that ended by themselves after this time. */
const RESTART_DELAY_MS = 5_000

export function createProcessHost(deps: HostDeps): ProcessHost {
  const { simulation, cluster, drivers, setup, stockAnswers } = deps
  const processes = new Map<string, SimProcess>()

  /** Returns how one incarnation of a process connects to the drivers. Their socket addresses are their names. */
  function createConnect(env: Env, process: string, incarnation: number) {
    return ({ address, clock, log, metrics }: ConnectOptions, nodeId?: string): CsiConnection => {
      const name = address as DriverName
      const driver = deps.wrapDriver(env, drivers.get(name)!.driverFor(env, nodeId))
      let isClosed = false
      const csi = createCsiDriver(
        async (method, request, options) => {
          if (isClosed) throw new CsiError('CANCELLED', `${method.name}: the connection is closed`)
          const { volumeId = '', name: volumeName = '' } = request as unknown as { volumeId?: string; name?: string }
          const volume = volumeId || volumeName
          const call = { process, incarnation, driver: name, method: method.name, volume, request }
          const recordOutcome = deps.recordCall({ ...call, startMs: simulation.nowMs })
          if (volume) simulation.note(`${process}: ${method.name} ${volume}`)
          try {
            const response = await callDriver(driver, method, request, options)
            recordOutcome('OK')
            return response
          } catch (error) {
            recordOutcome((error as CsiError).codeName ?? 'UNKNOWN')
            throw error
          }
        },
        { instruments: { clock, log, metrics } },
      )
      return {
        ...csi,
        close() {
          isClosed = true
        },
      }
    }
  }

  /** Returns the client that a process has in production. The roles on a stock server may allow update but not patch. */
  function clientOf(networkClient: Client, isAtomic: boolean): Client {
    if (isAtomic) return networkClient
    return stockAnswers ? patchByUpdate(createNonAtomicClient(networkClient)) : createNonAtomicClient(networkClient)
  }

  return {
    processes,
    add(name, main, { isAtomic = setup.commits === 'atomic', nodeName } = {}) {
      const run = (env: Env, network: Client) => {
        setMaxListeners(0, env.signal)
        const incarnation = processes.get(name)?.starts ?? 1
        const client = deps.wrapClient(name, clientOf(deps.wrapNetworkClient(env, network), isAtomic))
        const registry = deps.registryFor(name, incarnation)
        const operations = deps.operationsFor(env)
        void main({ env, client, registry, operations, connect: createConnect(env, name, incarnation) }).then(
          () => end(undefined),
          (error: unknown) => end(error),
        )
        function end(error: unknown): void {
          if (!env.alive) return
          deps.recordEnd(name, error)
          instance.crash()
          simulation.schedule(RESTART_DELAY_MS, () => instance.start())
        }
      }
      const limitToNode = nodeName === undefined ? undefined : cluster.withNodePermissions(nodeName)
      const wrapStock = isAtomic ? undefined : stockAnswers?.wrap
      const adaptServer =
        limitToNode && wrapStock ? (server: Client) => wrapStock(limitToNode(server)) : (limitToNode ?? wrapStock)
      const instance = cluster.add(name, run, adaptServer)
      processes.set(name, instance)
      return instance
    },
  }
}

export const commonDeps = ({ clock, random, signal, log }: Env) => ({ clock, random, signal, log })
