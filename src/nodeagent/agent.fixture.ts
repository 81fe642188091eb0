// Fixture for agent tests: an agent on a test server, with an in-memory disk and a fake CSI driver that mounts on it.
// The agent can be killed and the driver stopped at any time, and both can be started again on the same disk.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { onTestFinished } from 'vitest'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { createFakeDriver, type FakeDriver, type FakeRule, type FakeSettings, fakeSettings } from '../csi/fake/index.ts'
import { CreateVolumeRequestSchema } from '../csi/gen/csi_pb.js'
import { type CsiConnection, CsiError, createCsiDriver } from '../csi/index.ts'
import { createCacheSet } from '../runtime/index.ts'
import { createNodeAgent, type NodeAgent, type NodeAgentDeps } from './agent.ts'
import { applyNodeCall, createMemoryDisk, type MemoryDisk } from './disk/memory-disk.ts'
import { createAgentMetrics } from './metrics.ts'
import type { MachineInfo } from './node/machine-info.ts'
import type { PluginSocket } from './registration/plugin-directory.ts'

export const NODE = 'node-1'
export const DRIVER = 'fake.stowage.example'
export const ROOT = '/var/lib/node-1'
export const PODS = '/api/v1/namespaces/default/pods'
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
export const VOLUMES = '/api/v1/persistentvolumes'

const SOCKET = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`

const MACHINE: MachineInfo = {
  hostname: 'machine',
  address: '192.0.2.7',
  os: 'linux',
  arch: 'amd64',
  cpus: 4,
  memoryBytes: 8 * 1024 ** 3,
  kernel: '6.1.0',
  system: 'Debian',
  machineId: 'm',
  bootId: 'b',
}

export interface AgentFixtureOptions {
  readonly settings?: Partial<FakeSettings>
  /** The spec of the CSIDriver object, or null for no object. Default: attachRequired false. */
  readonly csiDriver?: object | null
  readonly log?: Logger
  readonly wrapClient?: (client: Client) => Client
  readonly agent?: Partial<NodeAgentDeps>
  /** Whether to start the agent. Default true. */
  readonly autoStart?: boolean
}

export interface AgentFixture {
  readonly server: ServerFixture
  readonly client: Client
  readonly disk: MemoryDisk
  readonly fake: FakeDriver
  readonly registry: Registry
  readonly agent: NodeAgent
  /** The errors passed to NotifyRegistrationStatus. An empty string is success. */
  readonly notifiedErrors: string[]
  /** Resolves when the agent has stopped, with the error that stopped it, if any. */
  readonly stopped: Promise<Error | undefined>
  /** The sockets in the registration directory. The next scan detects changes. */
  readonly sockets: PluginSocket[]
  start(overrides?: Partial<NodeAgentDeps>): void
  /** Stops the agent gracefully. */
  stop(): Promise<void>
  /** Kills the agent. Its driver calls in progress never return. */
  kill(): void
  stopDriver(): void
  startDriver(): void
  setRules(rules: readonly FakeRule[]): void
  /** Returns the stage, unstage, publish, unpublish and expand calls since the previous call of this function. */
  calls(): string[]
  /** Creates a volume in the driver, and a PV and a claim that are bound to each other. */
  createVolume(
    name: string,
    overrides?: { pv?: object; csi?: object; claim?: object; claimStatus?: object },
  ): Promise<void>
  createPod(
    name: string,
    claims: readonly string[],
    overrides?: { spec?: object; container?: object; readOnly?: boolean },
  ): Promise<string>
  pod(name: string): Promise<any>
  phase(name: string): Promise<string>
  /** Returns `reason: message` of each event about an object. */
  events(name: string): Promise<string[]>
  waitUntil(condition: () => Promise<boolean> | boolean, description: string): Promise<void>
  waitUntilRunning(name: string): Promise<void>
  waitUntilDeleted(name: string): Promise<void>
  /** Waits until no reconcile is running or queued. */
  waitUntilIdle(): Promise<void>
}

export async function createAgentFixture(options: AgentFixtureOptions = {}): Promise<AgentFixture> {
  const { log = silentLog, wrapClient = (client: Client) => client, autoStart = true } = options
  const server = await createServerFixture({ hasAccountTokens: true })
  const client = server.client()
  const nodeClient = wrapClient(server.clientOf('node'))
  const disk = createMemoryDisk()
  const settings = fakeSettings({ controller: ['CREATE_DELETE_VOLUME'], ...options.settings })
  const fake = createFakeDriver({ clock: server.clock, settings })
  const registry = new Registry()
  const notifiedErrors: string[] = []
  const sockets: PluginSocket[] = [{ path: SOCKET, id: '1' }]
  let isDriverUp = true
  let returnedCallCount = 0
  let run: AgentRun | undefined
  let agent: NodeAgent

  /** Connects a run of the agent to the driver. Successful calls change the disk. */
  function connect(process: Process): CsiConnection {
    const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node(NODE) }
    const driver = createCsiDriver(async (method: DescMethod, request: Message, { timeoutMs, signal }) => {
      if (process.isKilled) return new Promise<never>(() => {})
      if (!isDriverUp) throw new CsiError('UNAVAILABLE', 'Cannot connect to the CSI driver')
      const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
      const call = service[method.localName]!(request, { signal: new AbortController().signal })
      // A kill does not cancel calls in the driver.
      const cancellableCall = signal && !process.isKilled ? withCancellation(call, signal, process) : call
      const reply = await (timeoutMs === undefined ? cancellableCall : withTimeout(cancellableCall, timeoutMs))
      // The call takes effect even if the agent was killed.
      applyNodeCall(disk, method.name, request as never)
      if (process.isKilled) return new Promise<never>(() => {})
      return create(method.output, reply as never)
    })
    return { ...driver, close() {} }
  }

  const withTimeout = (call: Promise<object>, timeoutMs: number): Promise<object> =>
    new Promise((resolve, reject) => {
      const cancel = server.clock.after(timeoutMs, () => reject(new CsiError('DEADLINE_EXCEEDED', 'deadline exceeded')))
      call.then(resolve, reject).finally(cancel)
    })

  const withCancellation = (call: Promise<object>, signal: AbortSignal, process: Process): Promise<object> =>
    new Promise((resolve, reject) => {
      const cancel = () => process.isKilled || reject(new CsiError('CANCELLED', 'canceled'))
      signal.addEventListener('abort', cancel, { once: true })
      call.then(resolve, reject).finally(() => signal.removeEventListener('abort', cancel))
    })

  const { csiDriver = { attachRequired: false } } = options
  if (csiDriver) {
    await server.post('/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: DRIVER }, spec: csiDriver })
  }

  const fixture: AgentFixture = {
    server,
    client,
    disk,
    fake,
    registry,
    notifiedErrors,
    sockets,
    get agent() {
      return agent
    },
    get stopped() {
      return run!.stopped
    },
    start(overrides = {}) {
      const process: Process = { isKilled: false }
      const agentClient = stopAtKill(nodeClient, process)
      const sharedDeps = { clock: server.clock, random: () => 0.5, log }
      const caches = createCacheSet({ ...sharedDeps, client: agentClient })
      registry.clear()
      agent = createNodeAgent({
        ...sharedDeps,
        nodeName: NODE,
        identity: 'agent-1',
        root: ROOT,
        client: agentClient,
        caches,
        metrics: createAgentMetrics(registry, server.clock),
        machine: MACHINE,
        allowedHostPaths: ['/srv'],
        disk: stopAtKill(disk, process),
        plugins: {
          directory: { list: async () => [...sockets], watch: () => () => {} },
          calls: {
            async getInfo() {
              if (!isDriverUp) throw new Error('connection refused')
              return { type: 'CSIPlugin', name: DRIVER, endpoint: '/csi.sock', supportedVersions: ['1.0.0'] }
            },
            notify: async (_socket, error = '') => void notifiedErrors.push(error),
          },
        },
        connect: () => connect(process),
        version: 'v0.1.0',
        ...options.agent,
        ...overrides,
      })
      const abort = new AbortController()
      const stopped = agent
        .run(abort.signal)
        .then(
          () => undefined,
          (error: Error) => error,
        )
        .finally(() => caches.stop())
      run = { process, abort, stopped }
    },
    async stop() {
      run?.abort.abort()
      await run?.stopped
      run = undefined
    },
    kill() {
      if (!run) return
      run.process.isKilled = true
      run.abort.abort()
      run = undefined
    },
    stopDriver() {
      isDriverUp = false
    },
    startDriver() {
      isDriverUp = true
    },
    setRules: (rules) => fake.script.setRules(rules),
    calls() {
      const newCalls = fake.record.calls.slice(returnedCallCount)
      returnedCallCount = fake.record.calls.length
      return newCalls.filter(({ method }) => VOLUME_CALLS.test(method)).map(({ method }) => method)
    },

    async createVolume(name, overrides = {}) {
      const capability = { accessMode: { mode: 1 }, accessType: { case: 'mount' as const, value: {} } }
      const request = create(CreateVolumeRequestSchema, {
        name,
        capacityRange: { requiredBytes: 1024n ** 3n },
        volumeCapabilities: [capability],
      })
      const { volume } = await fake.controller.createVolume(request, { signal: new AbortController().signal })
      const claim = await expectSuccess(
        server.post(CLAIMS, {
          metadata: { name },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '1Gi' } },
            storageClassName: '',
            volumeName: `pv-${name}`,
            ...overrides.claim,
          },
        }),
      )
      await expectSuccess(
        server.post(VOLUMES, {
          metadata: { name: `pv-${name}` },
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
            csi: { driver: DRIVER, volumeHandle: volume!.volumeId, ...overrides.csi },
            ...overrides.pv,
          },
        }),
      )
      const status = {
        phase: 'Bound',
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        ...overrides.claimStatus,
      }
      await expectSuccess(server.patch(`${CLAIMS}/${name}/status`, { status }))
    },

    async createPod(name, claims, overrides = {}) {
      const volumes = claims.map((claimName) => ({
        name: claimName,
        persistentVolumeClaim: { claimName, ...(overrides.readOnly ? { readOnly: true } : {}) },
      }))
      const mounts = claims.map((claim) => ({ name: claim, mountPath: `/data/${claim}` }))
      const pod = await expectSuccess(
        server.post(PODS, {
          metadata: { name },
          spec: {
            nodeName: NODE,
            containers: [{ name: 'main', image: 'none', volumeMounts: mounts, ...overrides.container }],
            volumes,
            ...overrides.spec,
          },
        }),
      )
      return pod.metadata.uid
    },
    pod: async (name) => (await server.get(`${PODS}/${name}`)).json,
    phase: async (name) => (await fixture.pod(name)).status?.phase ?? 'none',
    async events(name) {
      const { items } = (await server.get('/api/v1/events')).json
      const objectEvents = items.filter((event: any) => event.involvedObject.name === name)
      return objectEvents.map(({ reason, message }: any) => `${reason}: ${message}`)
    },

    async waitUntil(condition, description) {
      for (let turn = 0; turn < 3_000; turn++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (turn % 20 === 19) await server.clock.advance(500)
      }
      throw new Error(`timed out waiting for ${description}; ${JSON.stringify(agent?.queueStates())}`)
    },
    waitUntilRunning: (name) =>
      fixture.waitUntil(async () => (await fixture.phase(name)) === 'Running', `${name} to run`),
    waitUntilDeleted: (name) =>
      fixture.waitUntil(async () => (await server.get(`${PODS}/${name}`)).status === 404, `${name} to be deleted`),
    async waitUntilIdle() {
      for (let turns = 0; turns < 30; turns++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (agent.isBusy) turns = 0
      }
    },
  }
  onTestFinished(async () => {
    fixture.fake.script.setRules([])
    fixture.fake.script.release()
    await fixture.stop()
    await server.store.close()
  })
  if (autoStart) {
    fixture.start()
    await fixture.waitUntil(() => agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
  }
  return fixture
}

const VOLUME_CALLS = /^Node(Stage|Unstage|Publish|Unpublish|Expand)/

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** The simulated process in which one run of the agent executes. */
interface Process {
  isKilled: boolean
}

interface AgentRun {
  readonly process: Process
  readonly abort: AbortController
  readonly stopped: Promise<Error | undefined>
}

/** Wraps an object so that calls, except `watch`, have no effect and never settle after the process is killed. */
function stopAtKill<T extends object>(object: T, process: Process): T {
  return new Proxy(object, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (process.isKilled && key !== 'watch') return new Promise(() => {})
        return value.apply(target, args)
      }
    },
  })
}

async function expectSuccess(response: ReturnType<ServerFixture['post']>): Promise<any> {
  const { status, json } = await response
  if (status >= 300) throw new Error(`${status}: ${json.message}`)
  return json
}
