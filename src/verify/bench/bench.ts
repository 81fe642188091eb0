// Runs the production control plane around the driver under test: an API server with an in-memory store, the controllers of
// `stowage up` that a volume needs, and one node agent on this machine, all on virtual time. lifecycle.ts runs volumes through
// their lifecycle on it.
import { setMaxListeners } from 'node:events'
import { Registry } from 'prom-client'
import { allGatesOn } from '../../api/feature-gates.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { createApiServer, createBuiltIns, inProcessClient, SYSTEM_USER, versionInfo } from '../../apiserver/index.ts'
import type { Random } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type CsiConnection, CsiError, createCsiDriver, type Transport } from '../../csi/index.ts'
import { createNodeAgent } from '../../nodeagent/agent.ts'
import type { NodeDisk } from '../../nodeagent/disk/disk.ts'
import { createAgentMetrics } from '../../nodeagent/metrics.ts'
import { readMachineInfo } from '../../nodeagent/node/machine-info.ts'
import { type ControllerName, runControllers } from '../../processes/controllers.ts'
import { createCacheSet, createClientMetrics } from '../../runtime/index.ts'
import { openMemoryStore } from '../../store/index.ts'
import { type FaultDeps, type FaultName, injectFault } from '../calls/faults.ts'
import { violate } from '../check.ts'
import type { DriverProfile } from '../profile.ts'
import type { VerifySettings } from '../settings.ts'
import type { VirtualClock } from '../virtual-clock.ts'
import { type BenchObjects, createBenchObjects } from './objects.ts'

export interface BenchOptions {
  /** The fault to inject between the driver and the controllers. Default: none. */
  readonly fault?: FaultName
}

export interface Bench {
  readonly client: Client
  readonly objects: BenchObjects
  /** Advances virtual time until the condition holds. Throws Violation with the last events if it does not. */
  reach(goal: string, condition: () => Promise<boolean>): Promise<void>
  /** Advances virtual time. */
  wait(ms: number): Promise<void>
  /** Returns up to three different warnings from the events of the controllers and the agent. */
  readWarnings(): Promise<string[]>
  stop(): Promise<void>
}

export interface BenchDeps extends Omit<FaultDeps, 'report' | 'clock'> {
  readonly clock: VirtualClock
  readonly profile: DriverProfile
  readonly settings: VerifySettings
  /** The directory for the node agent's root. */
  readonly root: string
  readonly disk: NodeDisk
}

/** The controllers involved in a volume's lifecycle. */
const CONTROLLERS: readonly ControllerName[] = ['attaching', 'binding', 'node-lifecycle', 'protection', 'scheduler']
const NODE_NAME = 'verify-node'
const DRIVER_ADDRESS = 'driver'
/** The virtual time for one step of a volume's lifecycle. The controllers' backoff reaches 5 min. */
const STEP_MS = 45 * 60_000
const WARNINGS_MAX = 3

export async function startBench(deps: BenchDeps, { fault }: BenchOptions = {}): Promise<Bench> {
  const { clock, random, disk, root } = deps
  const problems: string[] = []
  const transport = injectFault(fault, { ...deps, report: (problem) => void problems.push(problem) })
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  const client = await createServer(clock, random)
  const objects = await createBenchObjects({ ...deps, client })
  const common = { client, clock, random, log: silentLog, signal: abort.signal }
  const failures: unknown[] = []
  const runs = [runBenchControllers(), runAgent()].map((run) =>
    run.catch((error: unknown) => void failures.push(error)),
  )

  function runBenchControllers(): Promise<void> {
    const registry = new Registry()
    return runControllers({
      ...common,
      registry,
      metrics: createClientMetrics(registry),
      isStoreShared: false,
      gates: allGatesOn,
      names: CONTROLLERS,
      inProcessProvisioners: [],
      drivers: [{ address: DRIVER_ADDRESS }],
      connect: () => connect(transport),
    })
  }

  async function runAgent(): Promise<void> {
    const caches = createCacheSet(common)
    const agent = createNodeAgent({
      ...common,
      nodeName: NODE_NAME,
      identity: `${NODE_NAME}_verify`,
      root,
      caches,
      metrics: createAgentMetrics(new Registry(), clock),
      machine: await clock.hold(readMachineInfo()),
      disk: holdDuringAccess(disk, clock),
      plugins: {
        directory: { list: async () => [], watch: () => () => {}, watchesAll: true },
        calls: {
          getInfo: async () => ({ type: '', name: '', endpoint: '', supportedVersions: [] }),
          notify: async () => {},
        },
      },
      driverSockets: [DRIVER_ADDRESS],
      connect: () => connect(transport),
      version: versionInfo().gitVersion,
    })
    try {
      await agent.run(abort.signal)
    } finally {
      await caches.stop()
    }
  }

  async function readWarnings(): Promise<string[]> {
    const { items } = await client.list(eventKind)
    const texts = items
      .filter(({ type }) => type === 'Warning')
      .map(({ reason, message, involvedObject }) => `${involvedObject.kind}: ${reason}: ${message}`)
    return [...new Set(texts)].slice(-WARNINGS_MAX)
  }

  return {
    client,
    objects,
    readWarnings,
    async reach(goal, condition) {
      const isReached = await clock.runUntil(
        async () => problems.length > 0 || failures.length > 0 || (await condition()),
        STEP_MS,
      )
      if (failures.length > 0) throw failures[0]
      if (problems.length > 0) violate(problems[0] as string)
      if (isReached) return
      const lastWarnings = await readWarnings()
      const reasons = lastWarnings.length > 0 ? ` Last events: ${lastWarnings.join('; ')}` : ''
      violate(`${goal}: not reached within ${STEP_MS / 60_000} min of virtual time.${reasons}`)
    },
    wait: async (ms) => void (await clock.runUntil(() => false, ms)),
    async stop() {
      abort.abort()
      await clock.runUntilSettled(Promise.all(runs))
    },
  }
}

async function createServer(clock: VirtualClock, random: Random): Promise<Client> {
  const store = await openMemoryStore({ clock })
  const server = createApiServer({
    ...{ store, clock, random, log: silentLog, kinds: ALL_KINDS, gates: allGatesOn },
    authenticator: {
      authenticate: () => ({ is: 'authenticated', user: SYSTEM_USER }),
      authenticateToken: () => undefined,
    },
    authorizer: { authorize: () => ({ allowed: true }) },
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  return inProcessClient(server.objects, SYSTEM_USER)
}

function connect(transport: Transport): CsiConnection {
  let isClosed = false
  const driver = createCsiDriver(async (method, request, options) => {
    if (isClosed) throw new CsiError('CANCELLED', `${method.name}: the connection is closed`)
    return transport(method, request, options)
  })
  return {
    ...driver,
    close() {
      isClosed = true
    },
  }
}

/** Wraps the disk so that virtual time stops during every access. */
const holdDuringAccess = (disk: NodeDisk, clock: VirtualClock): NodeDisk =>
  new Proxy(disk, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args)
        return result instanceof Promise ? clock.hold(result) : result
      }
    },
  })
