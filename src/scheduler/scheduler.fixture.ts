// The scheduler beside the real binding, provisioning, protection and ephemeral controllers, on an API server in memory and
// a manual clock. The storage is a pool of bytes per place that records requests beyond its size; its capacity reports
// are written by the test, as late as the test likes.
import { setMaxListeners } from 'node:events'
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { Kind, KubeObject } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../api/quantity.ts'
import { inProcessClient, SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
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
  extends Partial<Pick<SchedulerOptions, 'capacityReservation' | 'bindTimeoutMs' | 'schedulerMetrics'>> {
  readonly gates?: string
  /** The value of --runtime-config. */
  readonly runtimeConfig?: string
  /** Wraps the scheduler's client. */
  readonly wrapClient?: (client: Client) => Client
  /** Default true. False: the test binds and provisions claims itself. */
  readonly controllers?: boolean
}

export interface SchedulerFixture {
  readonly server: ServerFixture
  readonly client: Client
  readonly scheduler: Scheduler
  readonly storage: PoolStorage
  createNode(
    name: string,
    parts?: { labels?: Record<string, string>; spec?: object; allocatable?: object },
  ): Promise<void>
  createClass(name: string, parts?: object): Promise<void>
  createDriver(storageCapacity?: boolean): Promise<void>
  createCapacity(name: string, parts: object): Promise<void>
  createClaim(name: string, parts?: ClaimParts): Promise<Readonly<PersistentVolumeClaim>>
  createVolume(name: string, parts?: { size?: string; spec?: object; phase?: string }): Promise<void>
  createPod(name: string, parts?: PodParts): Promise<void>
  pod(name: string): Promise<Readonly<Pod>>
  claim(name: string): Promise<Readonly<PersistentVolumeClaim>>
  nodeOf(name: string): Promise<string | undefined>
  /** The message of the pod's PodScheduled condition, if false. */
  message(name: string): Promise<string | undefined>
  /** `Type Reason: message` of each event about the object. */
  events(name: string): readonly string[]
  /** Runs everything that is ready, without advancing the clock. */
  settle(): Promise<void>
  /** Runs, advancing the clock, until the condition holds. */
  until(condition: () => unknown, what: string): Promise<void>
  /** Replaces the scheduler by a new one, which knows only the stored objects. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface ClaimParts {
  readonly size?: string
  readonly storageClassName?: string
  readonly spec?: object
  readonly metadata?: object
}

export interface PodParts {
  readonly claims?: readonly string[]
  /** Ephemeral volumes by name. */
  readonly ephemeral?: Readonly<Record<string, { size: string; storageClassName: string }>>
  readonly requests?: Readonly<Record<string, string>>
  readonly spec?: object
}

export interface PoolStorage {
  /** Free bytes by place; by default each node is a separate place. */
  readonly free: Map<string, bigint>
  /** Provision calls beyond the free bytes. */
  readonly refused: string[]
  /** Volumes that exist. */
  readonly created: number
  /** The place of a node's volumes. */
  placeOf: (node: string) => string
  /** Awaited before each volume is created, to simulate a slow driver. */
  before: () => Promise<void>
}

const GI = 1024n ** 3n
export const gi = (count: number): bigint => BigInt(count) * GI
const SETTLED_TURNS = 30

export async function startSchedulerFixture(options: SchedulerFixtureOptions = {}): Promise<SchedulerFixture> {
  const { controllers = true, wrapClient = (client) => client, gates, runtimeConfig, ...schedulerOptions } = options
  const server = await createServerFixture(runtimeConfig ? { runtimeConfig } : {})
  const { clock } = server
  const client = inProcessClient(server.server.objects, SYSTEM_USER)
  const recorded: { name: string; text: string }[] = []
  const events: EventRecorder = {
    record: (_kind, object, { type, reason, message }) =>
      void recorded.push({ name: object.metadata.name ?? '', text: `${type} ${reason}: ${message}` }),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const storage = poolStorage()
  const random = seededRandom()
  const common = { clock, random, log: silentLog, events }

  type Deps = ControllerDeps & { readonly events: EventRecorder }
  function run(parts: (deps: Deps) => { run(signal: AbortSignal): Promise<void> }[], own: Client) {
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const caches = createCacheSet({ client: own, clock, random })
    const started = parts({ ...common, client: own, caches }).map((one) => one.run(abort.signal))
    return async () => {
      abort.abort()
      await Promise.all(started)
      await caches.stop()
    }
  }

  let scheduler!: Scheduler
  const startScheduler = () =>
    run((deps) => {
      scheduler = createScheduler({
        ...deps,
        ...schedulerOptions,
        gates: gates ? parseFeatureGates(gates) : undefined,
      })
      return [scheduler]
    }, wrapClient(client))
  let stopScheduler = startScheduler()
  const stopOthers = controllers
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

  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const create = <T extends KubeObject>(kind: Kind<T>, object: object) => client.create(kind, object as T)
  const own: SchedulerFixture = {
    server,
    client,
    get scheduler() {
      return scheduler
    },
    storage,
    async createNode(name, { labels = {}, spec = {}, allocatable = { cpu: '8', memory: '32Gi', pods: '110' } } = {}) {
      await create(nodeKind, { metadata: { name, labels: { [HOST]: name, ...labels } }, spec, status: { allocatable } })
    },
    async createClass(name, parts = {}) {
      await create(storageClassKind, {
        metadata: { name },
        provisioner: DRIVER,
        volumeBindingMode: 'WaitForFirstConsumer',
        ...parts,
      })
    },
    async createDriver(storageCapacity = true) {
      await create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity } })
    },
    async createCapacity(name, parts) {
      await create(csiStorageCapacityKind, {
        metadata: { namespace: 'default', name },
        storageClassName: 'local',
        ...parts,
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
    nodeOf: async (name) => (await own.pod(name)).spec?.nodeName,
    message: async (name) =>
      (await own.pod(name)).status?.conditions?.find(
        ({ type, status }) => type === 'PodScheduled' && status === 'False',
      )?.message,
    events: (name) => recorded.filter((one) => one.name === name).map(({ text }) => text),
    async settle() {
      let revision = -1
      for (let still = 0; still < SETTLED_TURNS; still++) {
        await turn()
        if (server.store.revision !== revision) still = 0
        revision = server.store.revision
      }
    },
    async until(condition, what) {
      for (let turns = 0; turns < 4_000; turns++) {
        if (await condition()) return
        await turn()
        if (turns % 20 === 19) await clock.advance(500)
      }
      throw new Error(`still waiting for: ${what}; ${JSON.stringify(scheduler.queuedPods().slice(0, 5))}`)
    },
    async restart() {
      await stopScheduler()
      stopScheduler = startScheduler()
    },
    async stop() {
      await stopScheduler()
      await stopOthers()
      await server.store.close()
    },
  }
  return own
}

function poolStorage(): PoolStorage & { readonly provisioner: Provisioner } {
  const free = new Map<string, bigint>()
  const volumes = new Map<string, { place: string; bytes: bigint }>()
  const refused: string[] = []
  const storage: PoolStorage & { readonly provisioner: Provisioner } = {
    free,
    refused,
    get created() {
      return volumes.size
    },
    placeOf: (node) => node,
    before: async () => {},
    provisioner: {
      name: DRIVER,
      owns: ({ spec }) => spec?.csi?.driver === DRIVER,
      async provision({ claim, volumeName, selectedNode }, _signal, beforeCreate) {
        await beforeCreate?.()
        await storage.before()
        const place = storage.placeOf(selectedNode ?? '')
        const bytes = quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
        const left = (free.get(place) ?? 0n) - bytes
        if (!volumes.has(volumeName)) {
          if (left < 0n) {
            refused.push(`${claim.metadata.name} on ${place}`)
            return { is: 'failed', failure: 'reschedule', because: 'rpc error: code = ResourceExhausted desc = full' }
          }
          free.set(place, left)
          volumes.set(volumeName, { place, bytes })
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
        if (volume) free.set(volume.place, (free.get(volume.place) ?? 0n) + volume.bytes)
        volumes.delete(name)
        return { is: 'deleted' }
      },
    },
  }
  return storage
}

/** A seeded generator: the same sequence in every run. */
function seededRandom() {
  let state = 7
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
