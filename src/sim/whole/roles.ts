// The processes of the system, each made of the production code that its command runs: `stowage server`'s controllers,
// `stowage node`, and where the drivers' controllers stand apart, `stowage provisioner` and `stowage resizer`.
// What ends by itself is started again, as whoever watches over processes does.
import { setMaxListeners } from 'node:events'
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../../api/feature-gates.ts'
import { silentLog } from '../../base/log.ts'
import { processIdentity } from '../../base/process-identity.ts'
import { readProvisionerSettings } from '../../cli/commands/provisioner/command.ts'
import { provisionerParts } from '../../cli/commands/provisioner/run.ts'
import { readResizerSettings } from '../../cli/commands/resizer/command.ts'
import { resizerParts } from '../../cli/commands/resizer/run.ts'
import { parseLeaseDuration } from '../../cli/flags/lease-duration.ts'
import type { Client } from '../../client/index.ts'
import { createAttacher } from '../../controllers/attaching/index.ts'
import { createCapacityMetrics } from '../../controllers/capacity/index.ts'
import { createModifyingMetrics } from '../../controllers/modifying/index.ts'
import { createProvisioningMetrics } from '../../controllers/provisioning/index.ts'
import { callDriver } from '../../csi/driver.ts'
import {
  type CallObserver,
  type ConnectOptions,
  type CsiConnection,
  CsiError,
  createCsiDriver,
  createCsiMetrics,
  driverFacts,
  instrument,
  serializeCalls,
  waitUntilReady,
} from '../../csi/index.ts'
import { createNodeAgent } from '../../nodeagent/agent.ts'
import type { MemoryDisk } from '../../nodeagent/disk/memory-disk.ts'
import { createAgentMetrics } from '../../nodeagent/metrics.ts'
import type { MachineInfo } from '../../nodeagent/node/machine-info.ts'
import { CONTROLLERS, type ControllerName, runControllers } from '../../processes/controllers.ts'
import { createDriverControllers } from '../../processes/driver-controllers.ts'
import { leaseTimesOf } from '../../processes/run-sidecar.ts'
import { createCacheSet, createClientMetrics, createLeaderElection, createManager } from '../../runtime/index.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'
import { oneByOne } from '../one-by-one.ts'
import type { Env, SimProcess } from '../process.ts'
import type { World } from '../world.ts'
import type { Machine } from './machine.ts'
import type { Setup } from './plan.ts'
import type { StageCall } from './stage.ts'
import { DRIVERS, type DriverName, nodeIdOf, settingsOf } from './universe.ts'

export interface Roles {
  readonly processes: ReadonlyMap<string, SimProcess>
}

export interface RolesDeps {
  readonly world: World
  readonly cluster: Cluster
  readonly drivers: ReadonlyMap<DriverName, SimDriver>
  readonly machines: ReadonlyMap<string, Machine>
  readonly setup: Setup
  gates(): FeatureGates
  aroundClient(process: string, client: Client): Client
  registryFor(process: string, life: number): Registry
  /** A call begins; what it returns is told the end. */
  began(call: Omit<StageCall, 'endedMs' | 'outcome'>): (outcome: string) => void
  ended(process: string, error: unknown): void
}

/** Whoever watches over processes starts them again after this long. */
const RESTART_MS = 5_000
const ROOT = '/node'
const KUBE_SYSTEM = 'kube-system'
/** Longer than usual, and renewed less often: an hour of renewals would be most of what a run does. */
const LEASE = {
  leaderElection: 'true',
  leaderElectionLeaseDuration: '60s',
  leaderElectionRenewDeadline: '40s',
  leaderElectionRetryPeriod: '20s',
}
const RETRY_MS = 20_000
/** Of a node's lease: two may be lost before the node counts as lost. */
const RENEW_MS = 15_000

const MACHINE: MachineInfo = {
  hostname: 'machine',
  address: '192.0.2.7',
  os: 'linux',
  arch: 'amd64',
  cpus: 8,
  memoryBytes: 32 * 1024 ** 3,
  kernel: '6.1.0',
  system: 'Debian',
  machineId: 'm',
  bootId: 'b',
}

export function createRoles(deps: RolesDeps): Roles {
  const { world, cluster, drivers, machines, setup } = deps
  const processes = new Map<string, SimProcess>()
  const asItIs = (client: Client): Client => client
  const inMode = setup.commits === 'one by one' ? oneByOne : asItIs
  const isOurs = (name: ControllerName) => name !== 'quota' || setup.commits === 'atomic'

  function add(name: string, main: (life: LifeOf) => Promise<void>, mode = inMode): SimProcess {
    const process = cluster.add(name, (env, network) => {
      setMaxListeners(0, env.signal)
      const life = processes.get(name)?.starts ?? 1
      const client = deps.aroundClient(name, mode(network))
      const registry = deps.registryFor(name, life)
      void main({ env, client, registry, connect: connectFrom(env, name, life) }).then(
        () => over(undefined),
        (error: unknown) => over(error),
      )
      function over(error: unknown): void {
        if (!env.alive) return
        deps.ended(name, error)
        process.crash()
        world.schedule(RESTART_MS, () => process.start())
      }
    })
    processes.set(name, process)
    return process
  }

  /** How one life of a process reaches drivers: their sockets are their names. */
  function connectFrom(env: Env, process: string, life: number) {
    return ({ address, clock, log, metrics }: ConnectOptions, nodeId?: string): CsiConnection => {
      const name = address as DriverName
      const reached = drivers.get(name)!.driverFor(env, nodeId)
      let isClosed = false
      const observed = instrument(
        async (method, request, options) => {
          if (isClosed) throw new CsiError('CANCELLED', `${method.name}: the connection is closed`)
          const { volumeId = '', name: ofName = '' } = request as unknown as { volumeId?: string; name?: string }
          const volume = volumeId || ofName
          const ended = deps.began({
            process,
            life,
            driver: name,
            method: method.name,
            volume,
            request,
            beganMs: world.nowMs,
          })
          if (volume) world.note(`${process}: ${method.name} ${volume}`)
          try {
            const reply = await callDriver(reached, method, request, options)
            ended('OK')
            return reply
          } catch (error) {
            ended((error as CsiError).codeName ?? 'UNKNOWN')
            throw error
          }
        },
        { clock, log, ...(metrics ? { metrics } : {}) },
      )
      return {
        ...createCsiDriver(observed),
        close() {
          isClosed = true
        },
      }
    }
  }

  for (let nth = 1; nth <= setup.controlReplicas; nth++) add(`control-${nth}`, (life) => runControl(life))
  // A server without transactions keeps its quotas itself: here, by what ours is made of.
  if (setup.commits === 'one by one') add('quotas', (life) => runControl(life, ['quota']), asItIs)
  if (setup.home === 'apart') for (const name of DRIVERS) addSidecars(name)
  for (const machine of machines.values()) {
    machine.agent = add(`agent-${machine.name}`, (life) => runAgent(life, machine))
    const { start } = machine.agent
    machine.agent.start = () => void (machine.isOn && start()) // without power nothing starts
  }
  return { processes }

  function runControl(
    { env, client, registry, connect }: LifeOf,
    names: readonly ControllerName[] = CONTROLLERS.filter(isOurs),
  ): Promise<void> {
    return runControllers({
      ...common(env),
      client,
      registry,
      isShared: names.length > 1,
      leaseTimes: { ...parseLeaseDuration(LEASE.leaderElectionLeaseDuration), retryMs: RETRY_MS },
      gates: deps.gates(),
      capacityReservation: setup.capacityReservation,
      names,
      inProcess: [],
      drivers: setup.home === 'together' && names.length > 1 ? DRIVERS.map((address) => ({ address })) : [],
      connect,
    })
  }

  function addSidecars(driver: DriverName): void {
    const { controller } = settingsOf(driver, [])
    for (let nth = 1; nth <= setup.controlReplicas; nth++) {
      add(`provisioner-${driver}-${nth}`, (life) => runProvisioner(life, driver))
      if (controller.includes('EXPAND_VOLUME')) add(`resizer-${driver}-${nth}`, (life) => runResizer(life, driver))
      if (controller.includes('PUBLISH_UNPUBLISH_VOLUME'))
        add(`attacher-${driver}-${nth}`, (life) => runAttacher(life, driver))
    }
  }

  async function runProvisioner(life: LifeOf, driver: DriverName): Promise<void> {
    const { client, registry } = life
    const { connection, facts } = await meet(life, driver)
    const hasCapacity = facts.controller.has('GET_CAPACITY')
    const settings = {
      ...readProvisionerSettings({
        ...LEASE,
        immediateTopology: 'false',
        capacityOwnerrefLevel: '-1',
        ...(hasCapacity ? { enableCapacity: 'true' } : {}),
      }),
      gates: deps.gates(),
    }
    const metrics = createClientMetrics(registry)
    const met = { facts }
    const parts = provisionerParts(settings, { met, env: { NAMESPACE: KUBE_SYSTEM }, unlimited: client })
    const given = {
      ...met,
      driver: serializeCalls(connection),
      gates: deps.gates(),
      driverMetrics: {
        provisioning: createProvisioningMetrics(registry),
        capacity: createCapacityMetrics(registry),
      },
    }
    await createManager({
      ...common(life.env),
      client,
      metrics,
      lease: { namespace: KUBE_SYSTEM, name: driver, ...leaseTimesOf(settings) },
      createControllers: (term) => [createDriverControllers({ ...term, ...given }, parts)],
    }).run(life.env.signal)
  }

  async function runResizer(life: LifeOf, driver: DriverName): Promise<void> {
    const { client, registry } = life
    const { connection, facts } = await meet(life, driver)
    const settings = { ...readResizerSettings(LEASE), gates: deps.gates() }
    const metrics = createClientMetrics(registry)
    const given = {
      facts,
      driver: serializeCalls(connection),
      gates: deps.gates(),
      driverMetrics: { modifying: createModifyingMetrics(registry) },
    }
    await createManager({
      ...common(life.env),
      client,
      metrics,
      lease: { namespace: KUBE_SYSTEM, name: `resizer-${driver}`, ...leaseTimesOf(settings) },
      createControllers: (term) => [createDriverControllers({ ...term, ...given }, resizerParts(settings))],
    }).run(life.env.signal)
  }

  /** It has no command of its own; it is led as the others are. */
  async function runAttacher(life: LifeOf, driver: DriverName): Promise<void> {
    const { client, registry, env } = life
    const { connection, facts } = await meet(life, driver)
    const metrics = createClientMetrics(registry)
    const election = createLeaderElection({
      ...common(env),
      client,
      namespace: KUBE_SYSTEM,
      name: `attacher-${driver}`,
      identity: processIdentity(env.random),
      ...leaseTimesOf(readResizerSettings(LEASE)),
    })
    const lead = async (term: AbortSignal) => {
      setMaxListeners(0, term)
      const caches = createCacheSet({ client, ...common(env) })
      const calls = { driver: serializeCalls(connection), facts, election }
      await createAttacher({ client, caches, ...common(env), metrics, ...calls }).run(term)
    }
    await election.run(async (term) => await lead(term), env.signal)
  }

  async function meet({ env, registry, connect }: LifeOf, driver: DriverName) {
    const connection = connect({ address: driver, ...common(env), metrics: createCsiMetrics(registry) })
    await waitUntilReady(connection, common(env))
    return { connection, facts: await driverFacts(connection, env.signal) }
  }

  async function runAgent({ env, client, registry, connect }: LifeOf, machine: Machine): Promise<void> {
    const { name } = machine
    const metrics = createAgentMetrics(registry, env.clock)
    const caches = createCacheSet({ client, ...common(env) })
    const agent = createNodeAgent({
      ...common(env),
      nodeName: name,
      identity: `${name}_agent`,
      renewMs: RENEW_MS,
      root: ROOT,
      client,
      caches,
      metrics,
      machine: { ...MACHINE, hostname: name },
      disk: diskOf(env, machine.disk),
      plugins: {
        directory: { list: async () => [], watch: () => () => {}, watchesAll: true },
        calls: {
          getInfo: async () => ({ type: '', name: '', endpoint: '', supportedVersions: [] }),
          notify: async () => {},
        },
      },
      driverSockets: DRIVERS,
      connect: (address) =>
        connect({ address, ...common(env), metrics: metrics.calls as CallObserver }, nodeIdOf(name)),
      version: '1.33.0',
    })
    await agent.run(env.signal)
  }
}

interface LifeOf {
  readonly env: Env
  readonly client: Client
  readonly registry: Registry
  readonly connect: (options: ConnectOptions, nodeId?: string) => CsiConnection
}

const common = ({ clock, random, signal }: Env) => ({ clock, random, signal, log: silentLog })

/** Its agent may die at any of its accesses. */
const diskOf = (env: Env, disk: MemoryDisk): MemoryDisk =>
  new Proxy(disk, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        const done: unknown = value.apply(target, given)
        return done instanceof Promise ? env.pass(done) : done
      }
    },
  })
