// Adds the processes of the system that are clients of the server. They run production code: the controllers of `stowage up`,
// node agents and, if the drivers' controllers are sidecars, provisioners, resizers and attachers.

import { setMaxListeners } from 'node:events'
import { processIdentity } from '../../base/process-identity.ts'
import { readProvisionerSettings } from '../../cli/commands/provisioner/command.ts'
import { provisionerParts } from '../../cli/commands/provisioner/run.ts'
import { readResizerSettings } from '../../cli/commands/resizer/command.ts'
import { resizerParts } from '../../cli/commands/resizer/run.ts'
import { parseLeaseTimes } from '../../cli/flags/lease-times.ts'
import { createAttacher } from '../../controllers/attaching/index.ts'
import { createCapacityMetrics } from '../../controllers/capacity/index.ts'
import { createModifyingMetrics } from '../../controllers/modifying/index.ts'
import { createProvisioningMetrics } from '../../controllers/provisioning/index.ts'
import { provisionerOf } from '../../controllers/provisioning/plugin.ts'
import type { Provisioner } from '../../controllers/provisioning/provisioner.ts'
import {
  type CallObserver,
  createCsiMetrics,
  readDriverFacts,
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
import type { Env } from '../environment/process.ts'
import { DRIVERS, type DriverName, MEMORY_PLUGIN_PATH, nodeIdOf, settingsOf } from '../plan/catalog.ts'
import { SECOND_PROVISIONER } from '../plan/process-names.ts'
import type { Machine } from './machine.ts'
import { createMemoryPlugin } from './memory-plugin.ts'
import { commonDeps, createProcessHost, type HostDeps, type ProcessContext, type ProcessHost } from './process-host.ts'
import { createSimUsage } from './volume-usage.ts'

const ROOT = '/node'
const KUBE_SYSTEM = 'kube-system'
/** Leases last longer than usual and are renewed less often: otherwise an hour of renewals would be most of a run. */
const LEASE_FLAGS = {
  leaderElection: 'true',
  leaderElectionLeaseDuration: '60s',
  leaderElectionRenewDeadline: '40s',
  leaderElectionRetryPeriod: '20s',
}
/** Renewal period of a node's lease. */
const RENEWAL_INTERVAL_MS = 15_000

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

/** Adds every process except the server and the drivers. */
export function addProcesses(deps: HostDeps): ProcessHost {
  const { machines, setup } = deps
  const host = createProcessHost(deps)
  const { add } = host
  const usage = setup.autoGrow ? createSimUsage(deps) : undefined
  // Without identities, no controller creates ServiceAccounts, so that saved regressions do not change.
  const isEnabled = (name: ControllerName) =>
    (setup.identities || (name !== 'service-accounts' && name !== 'root-ca')) &&
    (name !== 'quota' || setup.commits === 'atomic') &&
    (name !== 'node-topology' || setup.autoGrow === true) &&
    (name !== 'stateful-sets' || setup.statefulSets === true)

  for (let nth = 1; nth <= setup.controlReplicas; nth++) add(`control-${nth}`, (context) => runControl(context))
  // A server without transactions maintains its quotas itself; here the quota controller does, with transactions.
  if (setup.commits === 'one by one') add('quotas', (context) => runControl(context, ['quota']), { isAtomic: true })
  if (setup.secondBinder) add('second-binder', (context) => runControl(context, ['binding', 'protection'], false))
  if (setup.driverControllers === 'sidecars') for (const name of DRIVERS) addSidecars(name)
  if (setup.secondProvisioner) add(SECOND_PROVISIONER, (context) => runProvisioner(context, 'net.sim', false))
  for (const machine of machines.values()) {
    const identity = setup.identities ? { nodeName: machine.name } : {}
    machine.agent = add(`agent-${machine.name}`, (context) => runAgent(context, machine), identity)
    const { start } = machine.agent
    machine.agent.start = () => void (machine.isRunning && start()) // a machine that is off or suspended starts nothing
  }
  return host

  function runControl(
    { env, client, registry, operations, connect }: ProcessContext,
    names: readonly ControllerName[] = CONTROLLERS.filter(isEnabled),
    isStoreShared = names.length > 1,
  ): Promise<void> {
    const hasProvisioners = isStoreShared && names.length > 1
    return runControllers({
      ...commonDeps(env),
      client,
      registry,
      metrics: createClientMetrics(registry, operations),
      isStoreShared,
      leaseTimes: parseLeaseTimes(LEASE_FLAGS),
      gates: deps.gates(),
      rootCa: 'CA',
      reservesCapacity: setup.capacityReservation,
      readUsage: usage && (({ caches }) => env.pass(Promise.resolve(usage.read(caches)))),
      names,
      inProcessProvisioners: setup.memoryPlugin && hasProvisioners ? [createPluginProvisioner(env)] : [],
      drivers:
        setup.driverControllers === 'in-process' && hasProvisioners ? DRIVERS.map((address) => ({ address })) : [],
      connect,
    })
  }

  function createPluginProvisioner(env: Env): Provisioner {
    const plugin = createMemoryPlugin({
      volumes: deps.pluginVolumes,
      call: (_description, operation) => env.pass(Promise.resolve().then(operation)),
      onDelete: (volumeName) => deps.recordPluginDelete(env.name, volumeName),
    })
    return provisionerOf(plugin, { clock: env.clock })
  }

  function addSidecars(driver: DriverName): void {
    const { controller } = settingsOf(driver, [])
    for (let nth = 1; nth <= setup.controlReplicas; nth++) {
      add(`provisioner-${driver}-${nth}`, (context) => runProvisioner(context, driver))
      if (controller.includes('EXPAND_VOLUME'))
        add(`resizer-${driver}-${nth}`, (context) => runResizer(context, driver))
      if (controller.includes('PUBLISH_UNPUBLISH_VOLUME'))
        add(`attacher-${driver}-${nth}`, (context) => runAttacher(context, driver))
    }
  }

  async function runProvisioner(context: ProcessContext, driver: DriverName, isElected = true): Promise<void> {
    const { client, registry, operations } = context
    const { connection, facts } = await connectDriver(context, driver)
    const hasCapacity = facts.controller.has('GET_CAPACITY')
    const settings = {
      ...readProvisionerSettings({
        ...LEASE_FLAGS,
        immediateTopology: 'false',
        capacityOwnerrefLevel: '-1',
        ...(hasCapacity ? { enableCapacity: 'true' } : {}),
      }),
      gates: deps.gates(),
    }
    const metrics = createClientMetrics(registry, operations)
    const parts = provisionerParts(settings, {
      driver: { facts },
      env: { NAMESPACE: KUBE_SYSTEM },
      unlimitedClient: client,
    })
    const driverDeps = {
      facts,
      driver: serializeCalls(connection),
      leaseNamespace: KUBE_SYSTEM,
      gates: deps.gates(),
      driverMetrics: {
        provisioning: createProvisioningMetrics(registry),
        capacity: createCapacityMetrics(registry),
      },
    }
    await createManager({
      ...commonDeps(context.env),
      client,
      metrics,
      lease: isElected ? { namespace: KUBE_SYSTEM, name: driver, ...leaseTimesOf(settings) } : undefined,
      createControllers: (term) => [createDriverControllers({ ...term, ...driverDeps }, parts)],
    }).run(context.env.signal)
  }

  async function runResizer(context: ProcessContext, driver: DriverName): Promise<void> {
    const { client, registry, operations } = context
    const { connection, facts } = await connectDriver(context, driver)
    const settings = { ...readResizerSettings(LEASE_FLAGS), gates: deps.gates() }
    const metrics = createClientMetrics(registry, operations)
    const driverDeps = {
      facts,
      driver: serializeCalls(connection),
      gates: deps.gates(),
      driverMetrics: { modifying: createModifyingMetrics(registry) },
    }
    await createManager({
      ...commonDeps(context.env),
      client,
      metrics,
      lease: { namespace: KUBE_SYSTEM, name: `resizer-${driver}`, ...leaseTimesOf(settings) },
      createControllers: (term) => [createDriverControllers({ ...term, ...driverDeps }, resizerParts(settings))],
    }).run(context.env.signal)
  }

  /** The attacher has no separate command; it uses the same leader election as the other sidecars. */
  async function runAttacher(context: ProcessContext, driver: DriverName): Promise<void> {
    const { client, registry, operations, env } = context
    const { connection, facts } = await connectDriver(context, driver)
    const metrics = createClientMetrics(registry, operations)
    const election = createLeaderElection({
      ...commonDeps(env),
      client,
      namespace: KUBE_SYSTEM,
      name: `attacher-${driver}`,
      identity: processIdentity(env.random),
      ...leaseTimesOf(readResizerSettings(LEASE_FLAGS)),
    })
    const lead = async (term: AbortSignal) => {
      setMaxListeners(0, term)
      const caches = createCacheSet({ client, ...commonDeps(env) })
      const calls = { driver: serializeCalls(connection), facts, election }
      await createAttacher({ client, caches, ...commonDeps(env), metrics, ...calls }).run(term)
    }
    await election.run(async (term) => await lead(term), env.signal)
  }

  async function connectDriver({ env, registry, connect }: ProcessContext, driver: DriverName) {
    const connection = connect({ address: driver, ...commonDeps(env), metrics: createCsiMetrics(registry) })
    await waitUntilReady(connection, commonDeps(env))
    return { connection, facts: await readDriverFacts(connection, env.signal) }
  }

  async function runAgent(
    { env, client, registry, operations, connect }: ProcessContext,
    machine: Machine,
  ): Promise<void> {
    const { name } = machine
    const metrics = createAgentMetrics(registry, env.clock)
    const caches = createCacheSet({ client, ...commonDeps(env) })
    const agent = createNodeAgent({
      ...commonDeps(env),
      nodeName: name,
      identity: `${name}_agent`,
      renewIntervalMs: RENEWAL_INTERVAL_MS,
      root: ROOT,
      client,
      caches,
      readsByName: setup.identities ?? false,
      metrics,
      clientMetrics: { operations },
      machine: { ...MACHINE, hostname: name },
      allowedHostPaths: [MEMORY_PLUGIN_PATH],
      disk: createCrashingDisk(env, machine.disk),
      plugins: {
        directory: { list: async () => [], watch: () => () => {}, watchesAll: true },
        calls: {
          getInfo: async () => ({ type: '', name: '', endpoint: '', supportedVersions: [] }),
          notify: async () => {},
        },
      },
      driverSockets: DRIVERS,
      connect: (address) =>
        connect({ address, ...commonDeps(env), metrics: metrics.calls as CallObserver }, nodeIdOf(name)),
      version: '1.33.0',
    })
    await agent.run(env.signal)
  }
}

/** Returns the disk with a possible crash of the agent at each access. */
const createCrashingDisk = (env: Env, disk: MemoryDisk): MemoryDisk =>
  new Proxy(disk, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args)
        return result instanceof Promise ? env.pass(result) : result
      }
    },
  })
