// Runs the scheduler with the real binding, provisioning, protection and ephemeral controllers on an in-memory API server
// with a manual clock. The storage has a pool of bytes per node. Tests write the capacity reports themselves.
import { setMaxListeners } from 'node:events'
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { Kind, KubeObject } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { priorityClassKind } from '../api/kinds/priority-class/priority-class.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../api/quantity.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import type { Random } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { createBindingControllers } from '../controllers/binding/index.ts'
import { createEphemeralController } from '../controllers/ephemeral/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import { createProvisioningControllers, type Provisioner } from '../controllers/provisioning/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { createCacheSet, type EventRecorder } from '../runtime/index.ts'
import { createScheduler, type Scheduler, type SchedulerOptions } from './scheduler.ts'

export const DRIVER = 'pools.example.com'
export const HOST = 'kubernetes.io/hostname'

export interface SchedulerFixtureOptions
  extends Partial<Pick<SchedulerOptions, 'reservesCapacity' | 'bindTimeoutMs' | 'schedulerMetrics'>> {
  readonly gates?: string
  /** The value of --runtime-config. */
  readonly runtimeConfig?: string
  /** Wraps the scheduler's client. */
  readonly wrapClient?: (client: Client) => Client
  /** Whether to run the controllers that bind and provision claims. Default true. */
  readonly runsControllers?: boolean
  /** Default: a generator with a fixed seed. */
  readonly random?: Random
}

export interface SchedulerFixture {
  readonly server: ServerFixture
  readonly client: Client
  readonly scheduler: Scheduler
  readonly storage: PoolStorage
  createNode(
    name: string,
    fields?: {
      labels?: Record<string, string>
      spec?: object
      allocatable?: object
      volumesMax?: number
      hasDriver?: boolean
    },
  ): Promise<void>
  createClass(name: string, fields?: object): Promise<void>
  createDriver(storageCapacity?: boolean): Promise<void>
  createPriority(name: string, value: number, fields?: object): Promise<void>
  createCapacity(name: string, fields: object): Promise<void>
  createClaim(name: string, fields?: ClaimFields): Promise<Readonly<PersistentVolumeClaim>>
  createVolume(name: string, fields?: { size?: string; spec?: object; phase?: string }): Promise<void>
  createPod(name: string, fields?: PodFields): Promise<void>
  pod(name: string): Promise<Readonly<Pod>>
  claim(name: string): Promise<Readonly<PersistentVolumeClaim>>
  nodeOf(name: string): Promise<string | undefined>
  /** Returns the message of the pod's PodScheduled condition if its status is False. */
  message(name: string): Promise<string | undefined>
  /** Returns `Type Reason: message` of each event about the object. */
  events(name: string): readonly string[]
  /** Waits until nothing was written for some turns of the event loop, without advancing the clock. */
  settle(): Promise<void>
  /** Advances the clock until the condition holds. */
  waitUntil(condition: () => unknown, description: string): Promise<void>
  /** Replaces the scheduler with a new one, which has none of its in-memory state. */
  restart(): Promise<void>
  stop(): Promise<void>
}

interface ClaimFields {
  readonly size?: string
  readonly storageClassName?: string
  readonly spec?: object
  readonly metadata?: object
}

interface PodFields {
  readonly claims?: readonly string[]
  /** Ephemeral volumes by name. */
  readonly ephemeral?: Readonly<Record<string, { size: string; storageClassName: string }>>
  readonly requests?: Readonly<Record<string, string>>
  readonly spec?: object
}

interface PoolStorage {
  /** Free bytes by pool. By default each node has its own pool with the node's name. */
  readonly freeBytes: Map<string, bigint>
  /** The claims and pools of requests that exceeded the free bytes. */
  readonly rejectedRequests: string[]
  /** The number of existing volumes. */
  readonly volumeCount: number
  /** Returns the pool of a node's volumes. */
  poolOf: (node: string) => string
  /** Awaited before each volume is created, to simulate a slow driver. */
  beforeCreate: () => Promise<void>
}

const GI = 1024n ** 3n
export const gi = (count: number): bigint => BigInt(count) * GI
const IDLE_TURNS = 30

export async function startSchedulerFixture(options: SchedulerFixtureOptions = {}): Promise<SchedulerFixture> {
  const { runsControllers = true, wrapClient = (client) => client, gates, runtimeConfig, ...otherOptions } = options
  const { random = seededRandom(), ...schedulerOptions } = otherOptions
  const server = await createServerFixture(runtimeConfig ? { runtimeConfig } : {})
  const { clock } = server
  const client = server.client()
  const recordedEvents: { name: string; text: string }[] = []
  const events: EventRecorder = {
    record: (_kind, object, { type, reason, message }) =>
      void recordedEvents.push({ name: object.metadata.name ?? '', text: `${type} ${reason}: ${message}` }),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const storage = createPoolStorage()
  const sharedDeps = { clock, random, log: silentLog, events }

  type Deps = ControllerDeps & { readonly events: EventRecorder }
  type Runnable = { run(signal: AbortSignal): Promise<void> }
  /** Runs the components with separate caches. Returns a function that stops them. */
  function run(createComponents: (deps: Deps) => Runnable[], componentClient: Client) {
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const caches = createCacheSet({ client: componentClient, clock, random })
    const components = createComponents({ ...sharedDeps, client: componentClient, caches })
    const runs = components.map((component) => component.run(abort.signal))
    return async () => {
      abort.abort()
      await Promise.all(runs)
      await caches.stop()
    }
  }

  let scheduler!: Scheduler
  const startScheduler = () =>
    run(
      (deps) => {
        scheduler = createScheduler({
          ...deps,
          ...schedulerOptions,
          gates: gates ? parseFeatureGates(gates) : undefined,
        })
        return [scheduler]
      },
      wrapClient(server.clientOf('scheduler')),
    )
  let stopScheduler = startScheduler()
  const stopControllers = runsControllers
    ? run(
        (deps) => [
          createBindingControllers({ ...deps, inProcessProvisioners: [] }),
          createProtectionControllers(deps),
          createEphemeralController(deps),
          createProvisioningControllers({ ...deps, provisioner: storage.provisioner }),
        ],
        client,
      )
    : async () => {}

  const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
  const create = <T extends KubeObject>(kind: Kind<T>, object: object) => client.create(kind, object as T)
  const fixture: SchedulerFixture = {
    server,
    client,
    get scheduler() {
      return scheduler
    },
    storage,
    async createNode(name, fields = {}) {
      const { labels = {}, spec = {}, allocatable = { cpu: '8', memory: '32Gi', pods: '110' } } = fields
      const { volumesMax, hasDriver = true } = fields
      if (hasDriver) {
        const limit = volumesMax === undefined ? {} : { allocatable: { count: volumesMax } }
        const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: [], ...limit }]
        await create(csiNodeKind, { metadata: { name }, spec: { drivers } })
      }
      await create(nodeKind, { metadata: { name, labels: { [HOST]: name, ...labels } }, spec, status: { allocatable } })
    },
    async createClass(name, fields = {}) {
      await create(storageClassKind, {
        metadata: { name },
        provisioner: DRIVER,
        volumeBindingMode: 'WaitForFirstConsumer',
        ...fields,
      })
    },
    async createDriver(storageCapacity = true) {
      await create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity } })
    },
    async createPriority(name, value, fields = {}) {
      await create(priorityClassKind, { metadata: { name }, value, ...fields })
    },
    async createCapacity(name, fields) {
      await create(csiStorageCapacityKind, {
        metadata: { namespace: 'default', name },
        storageClassName: 'local',
        ...fields,
      })
    },
    createClaim: (name, { size = '1Gi', storageClassName = 'local', spec = {}, metadata = {} } = {}) =>
      create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name, ...metadata },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName,
          resources: { requests: { storage: size } },
          ...spec,
        },
      }),
    async createVolume(name, { size = '1Gi', spec = {}, phase = 'Available' } = {}) {
      await create(persistentVolumeKind, {
        metadata: { name },
        spec: {
          capacity: { storage: size },
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'local',
          csi: { driver: DRIVER, volumeHandle: name },
          ...spec,
        },
      })
      const patch = { type: 'merge', body: { status: { phase } } } as const
      await client.patch(persistentVolumeKind, { name }, patch, { subresource: 'status' })
    },
    async createPod(name, { claims = [], ephemeral = {}, requests = {}, spec = {} } = {}) {
      const volumes = [
        ...claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
        ...Object.entries(ephemeral).map(([volume, { size, storageClassName }]) => ({
          name: volume,
          ephemeral: {
            volumeClaimTemplate: {
              spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: size } } },
            },
          },
        })),
      ]
      await create(podKind, {
        metadata: { namespace: 'default', name },
        spec: { containers: [{ name: 'c', image: 'i', resources: { requests } }], volumes, ...spec },
      })
    },
    pod: (name) => client.get(podKind, { namespace: 'default', name }),
    claim: (name) => client.get(persistentVolumeClaimKind, { namespace: 'default', name }),
    nodeOf: async (name) => (await fixture.pod(name)).spec?.nodeName,
    message: async (name) =>
      (await fixture.pod(name)).status?.conditions?.find(
        ({ type, status }) => type === 'PodScheduled' && status === 'False',
      )?.message,
    events: (name) => recordedEvents.filter((event) => event.name === name).map(({ text }) => text),
    async settle() {
      let revision = -1
      for (let idleTurns = 0; idleTurns < IDLE_TURNS; idleTurns++) {
        await nextTurn()
        if (server.store.revision !== revision) idleTurns = 0
        revision = server.store.revision
      }
    },
    async waitUntil(condition, description) {
      for (let turns = 0; turns < 4_000; turns++) {
        if (await condition()) return
        await nextTurn()
        if (turns % 20 === 19) await clock.advance(500)
      }
      throw new Error(`timed out waiting for ${description}; ${JSON.stringify(scheduler.queuedPods().slice(0, 5))}`)
    },
    async restart() {
      await stopScheduler()
      stopScheduler = startScheduler()
    },
    async stop() {
      await stopScheduler()
      await stopControllers()
      await server.store.close()
    },
  }
  return fixture
}

function createPoolStorage(): PoolStorage & { readonly provisioner: Provisioner } {
  const freeBytes = new Map<string, bigint>()
  const volumes = new Map<string, { pool: string; bytes: bigint }>()
  const rejectedRequests: string[] = []
  const storage: PoolStorage & { readonly provisioner: Provisioner } = {
    freeBytes,
    rejectedRequests,
    get volumeCount() {
      return volumes.size
    },
    poolOf: (node) => node,
    beforeCreate: async () => {},
    provisioner: {
      name: DRIVER,
      owns: ({ spec }) => spec?.csi?.driver === DRIVER,
      async provision({ claim, volumeName, selectedNode }, _signal, beforeCreate) {
        await beforeCreate?.()
        await storage.beforeCreate()
        const pool = storage.poolOf(selectedNode ?? '')
        const bytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
        const remainingBytes = (freeBytes.get(pool) ?? 0n) - bytes
        if (!volumes.has(volumeName)) {
          if (remainingBytes < 0n) {
            rejectedRequests.push(`${claim.metadata.name} on ${pool}`)
            return { is: 'failed', failure: 'reschedule', message: 'rpc error: code = ResourceExhausted desc = full' }
          }
          freeBytes.set(pool, remainingBytes)
          volumes.set(volumeName, { pool, bytes })
        }
        const term = { matchExpressions: [{ key: HOST, operator: 'In' as const, values: [selectedNode ?? ''] }] }
        return {
          is: 'provisioned',
          volume: {
            spec: {
              capacity: { storage: formatQuantity(quantityFromBytes(bytes)) },
              csi: { driver: DRIVER, volumeHandle: volumeName },
              nodeAffinity: { required: { nodeSelectorTerms: [term] } },
            },
          },
        }
      },
      async delete({ metadata: { name = '' } }) {
        const volume = volumes.get(name)
        if (volume) freeBytes.set(volume.pool, (freeBytes.get(volume.pool) ?? 0n) + volume.bytes)
        volumes.delete(name)
        return { is: 'deleted' }
      },
    },
  }
  return storage
}

/** Creates a generator with a fixed seed. */
function seededRandom() {
  let state = 7
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
