// Fixture of the agent tests: an agent on a test server, with a memory disk and a fake CSI driver that mounts on it.
// Agent and driver can be killed at any moment and started again on the same disk.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { onTestFinished } from 'vitest'
import { inProcessClient, SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { createFakeDriver, type FakeDriver, type FakeRule, type FakeSettings, fakeSettings } from '../csi/fake/index.ts'
import { CreateVolumeRequestSchema } from '../csi/gen/csi_pb.js'
import { type CsiConnection, CsiError, createCsiDriver } from '../csi/index.ts'
import { createCacheSet } from '../runtime/index.ts'
import { createNodeAgent, type NodeAgent, type NodeAgentDeps } from './agent.ts'
import { createMemoryDisk, type MemoryDisk, mountAsAsked } from './disk/memory-disk.ts'
import { createAgentMetrics } from './metrics.ts'
import type { MachineInfo } from './node/machine-info.ts'
import type { FoundSocket } from './registration/plugin-directory.ts'

export const NODE = 'node-1'
export const DRIVER = 'fake.stowage.example'
export const ROOT = '/var/lib/node-1'
export const PODS = '/api/v1/namespaces/default/pods'
export const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
export const VOLUMES = '/api/v1/persistentvolumes'

const SOCKET = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`

export const MACHINE: MachineInfo = {
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
  /** The CSIDriver's spec. Default: attachRequired false. Null: no CSIDriver. */
  readonly csiDriver?: object | null
  readonly log?: Logger
  readonly around?: (client: Client) => Client
  readonly agent?: Partial<NodeAgentDeps>
  /** Default true. */
  readonly starts?: boolean
}

export interface AgentFixture {
  readonly server: ServerFixture
  readonly client: Client
  readonly disk: MemoryDisk
  readonly fake: FakeDriver
  readonly registry: Registry
  readonly agent: NodeAgent
  /** Errors passed to NotifyRegistrationStatus; '' is success. */
  readonly notified: string[]
  /** Settles with the error that ended the agent, if any. */
  readonly ended: Promise<Error | undefined>
  /** Sockets in the registration directory; changes are found by the next scan. */
  readonly sockets: FoundSocket[]
  start(more?: Partial<NodeAgentDeps>): void
  /** Stops gracefully. */
  stop(): Promise<void>
  /** Kills the agent: no call in progress takes effect. */
  kill(): void
  driverGoes(): void
  driverComes(): void
  script(rules: readonly FakeRule[]): void
  /** Names of the node service calls since the last call of this function. */
  calls(): string[]
  /** Creates a volume in the driver, and a PV and a claim bound to each other. */
  aVolume(name: string, more?: { pv?: object; csi?: object; claim?: object; claimStatus?: object }): Promise<void>
  aPod(
    name: string,
    claims: readonly string[],
    more?: { spec?: object; container?: object; readOnly?: boolean },
  ): Promise<string>
  pod(name: string): Promise<any>
  phase(name: string): Promise<string>
  /** `reason: message` of every event about an object, oldest first. */
  events(name: string): Promise<string[]>
  until(condition: () => Promise<boolean> | boolean, what: string): Promise<void>
  untilRunning(name: string): Promise<void>
  untilGone(name: string): Promise<void>
  /** Waits until no reconcile is running or queued. */
  untilQuiet(): Promise<void>
}

export async function createAgentFixture(options: AgentFixtureOptions = {}): Promise<AgentFixture> {
  const { log = silentLog, around = (client: Client) => client, starts = true } = options
  const server = await createServerFixture()
  const client = around(inProcessClient(server.server.objects, SYSTEM_USER))
  const disk = createMemoryDisk()
  const settings = fakeSettings({ controller: ['CREATE_DELETE_VOLUME'], ...options.settings })
  const fake = createFakeDriver({ clock: server.clock, settings })
  const registry = new Registry()
  const notified: string[] = []
  const sockets: FoundSocket[] = [{ path: SOCKET, id: '1' }]
  let isDriverUp = true
  let seen = 0
  let life: { readonly abort: AbortController; readonly over: Promise<Error | undefined>; isDead: boolean } | undefined
  let agent: NodeAgent

  /** The driver's client of one run of the agent; successful calls change the disk. */
  function connect(of: { isDead: boolean }): CsiConnection {
    const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node(NODE) }
    const driver = createCsiDriver(async (method: DescMethod, request: Message, { timeoutMs, signal }) => {
      if (of.isDead) return new Promise<never>(() => {})
      if (!isDriverUp) throw new CsiError('UNAVAILABLE', 'Cannot connect to the CSI driver')
      const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
      const call = service[method.localName]!(request, { signal: new AbortController().signal })
      // A kill does not cancel calls.
      const heard = signal && !of.isDead ? orGivenUp(call, signal, of) : call
      const reply = await (timeoutMs === undefined ? heard : orTooSlow(heard, timeoutMs))
      // The call takes effect even if the agent was killed.
      mountAsAsked(disk, method.name, request as never)
      if (of.isDead) return new Promise<never>(() => {})
      return create(method.output, reply as never)
    })
    return { ...driver, close() {} }
  }

  const orTooSlow = (call: Promise<object>, timeoutMs: number): Promise<object> =>
    new Promise((resolve, reject) => {
      const cancel = server.clock.after(timeoutMs, () => reject(new CsiError('DEADLINE_EXCEEDED', 'took too long')))
      call.then(resolve, reject).finally(cancel)
    })

  const orGivenUp = (call: Promise<object>, signal: AbortSignal, of: { isDead: boolean }): Promise<object> =>
    new Promise((resolve, reject) => {
      const giveUp = () => of.isDead || reject(new CsiError('CANCELLED', 'given up'))
      signal.addEventListener('abort', giveUp, { once: true })
      call.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
    })

  const { csiDriver = { attachRequired: false } } = options
  if (csiDriver) {
    await server.post('/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: DRIVER }, spec: csiDriver })
  }

  const world: AgentFixture = {
    server,
    client,
    disk,
    fake,
    registry,
    notified,
    sockets,
    get agent() {
      return agent
    },
    get ended() {
      return life!.over
    },
    start(more = {}) {
      const own = { isDead: false }
      const mortal = mortalClient(client, own)
      const common = { clock: server.clock, random: () => 0.5, log }
      const caches = createCacheSet({ ...common, client: mortal })
      registry.clear()
      agent = createNodeAgent({
        ...common,
        nodeName: NODE,
        identity: 'agent-1',
        root: ROOT,
        client: mortal,
        caches,
        metrics: createAgentMetrics(registry, server.clock),
        machine: MACHINE,
        disk: mortalDisk(disk, own),
        plugins: {
          directory: { list: async () => [...sockets], watch: () => () => {} },
          calls: {
            async getInfo() {
              if (!isDriverUp) throw new Error('connection refused')
              return { type: 'CSIPlugin', name: DRIVER, endpoint: '/csi.sock', supportedVersions: ['1.0.0'] }
            },
            notify: async (_socket, error = '') => void notified.push(error),
          },
        },
        connect: () => connect(own),
        version: 'v0.1.0',
        ...options.agent,
        ...more,
      })
      const abort = new AbortController()
      const over = agent
        .run(abort.signal)
        .then(
          () => undefined,
          (error: Error) => error,
        )
        .finally(() => caches.stop())
      life = Object.assign(own, { abort, over })
    },
    async stop() {
      life?.abort.abort()
      await life?.over
      life = undefined
    },
    kill() {
      if (!life) return
      life.isDead = true
      life.abort.abort()
      life = undefined
    },
    driverGoes() {
      isDriverUp = false
    },
    driverComes() {
      isDriverUp = true
    },
    script: (rules) => fake.script.setRules(rules),
    calls() {
      const fresh = fake.record.calls.slice(seen)
      seen = fake.record.calls.length
      return fresh.filter(({ method }) => VOLUME_CALLS.test(method)).map(({ method }) => method)
    },

    async aVolume(name, more = {}) {
      const capability = { accessMode: { mode: 1 }, accessType: { case: 'mount' as const, value: {} } }
      const request = create(CreateVolumeRequestSchema, {
        name,
        capacityRange: { requiredBytes: 1024n ** 3n },
        volumeCapabilities: [capability],
      })
      const { volume } = await fake.controller.createVolume(request, { signal: new AbortController().signal })
      const claim = await need(
        server.post(CLAIMS, {
          metadata: { name },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '1Gi' } },
            storageClassName: '',
            volumeName: `pv-${name}`,
            ...more.claim,
          },
        }),
      )
      await need(
        server.post(VOLUMES, {
          metadata: { name: `pv-${name}` },
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
            csi: { driver: DRIVER, volumeHandle: volume!.volumeId, ...more.csi },
            ...more.pv,
          },
        }),
      )
      const status = {
        phase: 'Bound',
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        ...more.claimStatus,
      }
      await need(server.patch(`${CLAIMS}/${name}/status`, { status }))
    },

    async aPod(name, claims, more = {}) {
      const volumes = claims.map((claimName) => ({
        name: claimName,
        persistentVolumeClaim: { claimName, ...(more.readOnly ? { readOnly: true } : {}) },
      }))
      const mounts = claims.map((claim) => ({ name: claim, mountPath: `/data/${claim}` }))
      const pod = await need(
        server.post(PODS, {
          metadata: { name },
          spec: {
            nodeName: NODE,
            containers: [{ name: 'main', image: 'none', volumeMounts: mounts, ...more.container }],
            volumes,
            ...more.spec,
          },
        }),
      )
      return pod.metadata.uid
    },
    pod: async (name) => (await server.get(`${PODS}/${name}`)).json,
    phase: async (name) => (await world.pod(name)).status?.phase ?? 'gone',
    async events(name) {
      const { items } = (await server.get('/api/v1/events')).json
      const about = items.filter((event: any) => event.involvedObject.name === name)
      return about.map(({ reason, message }: any) => `${reason}: ${message}`)
    },

    async until(condition, what) {
      for (let turn = 0; turn < 3_000; turn++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (turn % 20 === 19) await server.clock.advance(500)
      }
      throw new Error(`still waiting for: ${what}; ${JSON.stringify(agent?.standings())}`)
    },
    untilRunning: (name) => world.until(async () => (await world.phase(name)) === 'Running', `${name} to run`),
    untilGone: (name) =>
      world.until(async () => (await server.get(`${PODS}/${name}`)).status === 404, `${name} to be gone`),
    async untilQuiet() {
      for (let turns = 0; turns < 30; turns++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (agent.isBusy) turns = 0
      }
    },
  }
  onTestFinished(async () => {
    world.fake.script.setRules([])
    world.fake.script.release()
    await world.stop()
    await server.store.close()
  })
  if (starts) {
    world.start()
    await world.until(() => agent.drivers().registered.includes(DRIVER), 'the driver to be registered')
  }
  return world
}

const VOLUME_CALLS = /^Node(Stage|Unstage|Publish|Unpublish|Expand)/

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** Calls of a killed agent have no effect and never settle. */
const mortalClient = (client: Client, own: { readonly isDead: boolean }): Client => mortal(client, own)
const mortalDisk = (disk: MemoryDisk, own: { readonly isDead: boolean }) => mortal(disk, own)

function mortal<T extends object>(of: T, own: { readonly isDead: boolean }): T {
  return new Proxy(of, {
    get(target, key) {
      const value = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (own.isDead && key !== 'watch') return new Promise(() => {})
        return value.apply(target, args)
      }
    },
  })
}

async function need(answer: ReturnType<ServerFixture['post']>): Promise<any> {
  const { status, json } = await answer
  if (status >= 300) throw new Error(`${status}: ${json.message}`)
  return json
}
