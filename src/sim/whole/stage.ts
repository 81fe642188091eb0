// The whole system on one stage: the production server, controllers, scheduler and node agents as processes of a world,
// and several CSI drivers, all of which can be broken and healed. Nothing here judges.
import type { Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { FEATURE_GATES, type FeatureGate, type FeatureGates } from '../../api/feature-gates.ts'
import type { Client } from '../../client/index.ts'
import { type Cluster, createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import type { SimProcess } from '../process.ts'
import type { World } from '../world.ts'
import { createMachine, type Machine } from './machine.ts'
import type { Setup } from './plan.ts'
import { createRoles, type Roles } from './roles.ts'
import { DRIVERS, type DriverName, NODES, nodeOfId, settingsOf } from './universe.ts'

export interface Stage {
  readonly setup: Setup
  readonly cluster: Cluster
  readonly drivers: ReadonlyMap<DriverName, SimDriver>
  readonly nodes: ReadonlyMap<string, StageNode>
  /** By name: `server`, `control-1`, `agent-n1`, `driver net.sim`, `provisioner-net.sim-1` … */
  readonly processes: ReadonlyMap<string, SimProcess>
  /** Every registry of metrics there ever was, with the process whose life it measured. */
  readonly registries: readonly { readonly process: string; readonly life: number; readonly registry: Registry }[]
  /** Every driver call as its caller saw it: how many each life of a process began and heard the end of. */
  readonly calls: readonly StageCall[]
  /** Told of each driver call when it begins and when its caller hears of its end. */
  onCall(listener: (call: StageCall, phase: 'begins' | 'ends') => void): void
  /** Told when a process ends by itself, which none should. */
  onEnd(listener: (process: string, error: unknown) => void): void
  readonly gates: FeatureGates
  /** For the next start of each process. */
  setGate(gate: string, isOn: boolean): void
  /** Starts the processes that work on the server. */
  open(): void
  /** Ends all faults, brings everything back, and waits until the server answers. */
  heal(): Promise<void>
  /** Nothing of it is used any more. */
  close(): void
}

export interface StageOptions {
  /** How each life of a process sees the server, for checkers that must know what it read. */
  readonly aroundClient?: (process: string, client: Client) => Client
}

export interface StageNode {
  readonly name: string
  readonly isOn: boolean
  /** Paths at which something is mounted now, and the volume (`driver^handle`) where that is known. */
  mounts(): readonly { readonly path: string; readonly volume: string | undefined }[]
  cutPower(): void
  boot(): void
}

export interface StageCall {
  readonly process: string
  readonly life: number
  readonly driver: DriverName
  readonly method: string
  /** Its id, or its name where it has none yet. */
  readonly volume: string
  /** What was sent; checkers judge what it asks for. */
  readonly request: Message
  readonly beganMs: number
  readonly endedMs: number | undefined
  /** `OK` or the code, as the caller heard it. */
  readonly outcome: string | undefined
}

/** What watches resume from is short, so that some come too late. */
const HISTORY = { keepMs: 180_000, entriesMax: 300 }

export async function createStage(world: World, setup: Setup, options: StageOptions = {}): Promise<Stage> {
  const off = new Set<FeatureGate>()
  const gates: FeatureGates = { enabled: (gate) => !off.has(gate) }
  const gatesNow = (): FeatureGates => {
    const now = new Set(off)
    return { enabled: (gate) => !now.has(gate) }
  }
  const cluster = await createCluster(world, HISTORY, { expansionQuota: setup.expansionQuota, gates: gatesNow })
  const names = NODES.slice(0, setup.nodes)
  const machines = new Map<string, Machine>()
  const drivers = new Map<DriverName, SimDriver>()
  for (const name of DRIVERS) {
    const hooks = {
      onNode: (id: string, method: string, request: object) => machines.get(nodeOfId(id))?.did(name, method, request),
      bootOf: (id: string) => machines.get(nodeOfId(id))?.boots ?? 0,
    }
    drivers.set(name, createSimDriver(world, `driver ${name}`, settingsOf(name, names, setup), hooks))
  }
  for (const name of names) machines.set(name, createMachine(world, name, drivers))

  const processes = new Map<string, SimProcess>()
  const registries: { process: string; life: number; registry: Registry }[] = []
  const calls: StageCall[] = []
  const callListeners: ((call: StageCall, phase: 'begins' | 'ends') => void)[] = []
  const endListeners: ((process: string, error: unknown) => void)[] = []
  let roles: Roles | undefined

  processes.set('server', cluster.server)
  for (const [name, { process }] of drivers) processes.set(`driver ${name}`, process)

  const stage: Stage = {
    setup,
    cluster,
    drivers,
    nodes: machines,
    processes,
    registries,
    calls,
    gates,
    onCall: (listener) => void callListeners.push(listener),
    onEnd: (listener) => void endListeners.push(listener),
    setGate(gate, isOn) {
      const known = FEATURE_GATES.find((one) => one === gate)
      if (!known) throw new Error(`There is no feature gate ${gate}.`)
      if (isOn) off.delete(known)
      else off.add(known)
    },
    open() {
      roles ??= createRoles({
        world,
        cluster,
        drivers,
        machines,
        setup,
        gates: gatesNow,
        aroundClient: options.aroundClient ?? ((_process, client) => client),
        registryFor(process, life) {
          const registry = new Registry()
          registries.push({ process, life, registry })
          return registry
        },
        began(call) {
          const open = { ...call, endedMs: undefined, outcome: undefined }
          calls.push(open)
          for (const tell of callListeners) tell(open, 'begins')
          return (outcome) => {
            Object.assign(open, { endedMs: world.nowMs, outcome })
            for (const tell of callListeners) tell(open, 'ends')
          }
        },
        ended: (process, error) => {
          for (const tell of endListeners) tell(process, error)
        },
      })
      for (const [name, process] of roles.processes) processes.set(name, process)
    },
    async heal() {
      for (const machine of machines.values()) machine.boot()
      for (const driver of drivers.values()) {
        delete driver.scripted
        driver.unfreezeCapacity()
        driver.heal()
      }
      await cluster.heal()
    },
    close() {
      for (const process of processes.values()) process.dispose()
    },
  }
  return stage
}
