// Fixture of the binding tests: runs the binding controllers on a real API server with a store in memory. Tests create
// objects with any status, run the controllers until they are idle, and read objects and recorded events.
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { commitOneByOne } from '../../client/commit-one-by-one.ts'
import { type Client, keyOfObject, type WatchEvent, type WatchRequest } from '../../client/index.ts'
import { createCacheSet, type EventRecorder } from '../../runtime/index.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { type BindingOptions, createBindingControllers } from './binding-controllers.ts'

export interface BindingFixture {
  readonly api: ServerFixture
  readonly client: Client
  /** Creates a claim, with its status if `fields` has one. */
  createClaim(name: string, fields?: ClaimFields): Promise<Claim>
  createVolume(name: string, fields?: VolumeFields): Promise<Volume>
  createClass(name: string, fields?: ClassFields): Promise<void>
  createPod(name: string, claimName: string, fields?: { nodeName?: string; phase?: string }): Promise<void>
  getClaim(name: string): Promise<Claim>
  getVolume(name: string): Promise<Volume>
  start(): void
  /** Starts the controllers if they are not running, and advances the clock until they are idle. */
  settle(): Promise<void>
  /** Stops the controllers; the next start has empty caches. */
  stopControllers(): Promise<void>
  /** Events recorded on an object: `Type Reason: message`. */
  eventsOf(name: string): readonly string[]
  /** Outcomes of keys that are not done, by key. */
  queueStates(): Readonly<Record<string, string>>
  readonly reconciles: { readonly claims: number; readonly volumes: number }
  stop(): Promise<void>
}

interface ObjectFields {
  readonly metadata?: object
  readonly annotations?: Readonly<Record<string, string>>
  readonly status?: object
}
interface ClassFields {
  readonly provisioner?: string
  readonly metadata?: object
  readonly spec?: object
}
export type ClaimFields = ObjectFields & { readonly size?: string; readonly spec?: object }
export type VolumeFields = ObjectFields & { readonly size?: string; readonly spec?: object; readonly claim?: object }

export interface BindingFixtureOptions
  extends Partial<Pick<BindingOptions, 'inProcessProvisioners' | 'runningProvisioners' | 'bindingMetrics'>> {
  /** If false, the client of the controllers commits writes one by one. By default it commits as the server does. */
  readonly isAtomic?: boolean
  /** Whether events are stored as objects instead of being returned by `eventsOf`. Default false. */
  readonly shouldStoreEvents?: boolean
  /** Wraps the client between the binder and the server. */
  readonly wrapClient?: (client: Client) => Client
}

/** Number of turns of the event loop without activity after which the controllers are idle. */
const IDLE_TURNS = 12

export async function createBindingFixture(options: BindingFixtureOptions = {}): Promise<BindingFixture> {
  const api = await createServerFixture()
  const serverClient = api.client()
  const { wrapClient = (client) => client } = options
  const binderClient = api.clientOf('binding')
  const client = wrapClient(options.isAtomic === false ? disableAtomicCommits(binderClient) : binderClient)
  const recordedEvents: { readonly name: string; readonly line: string }[] = []
  const events: EventRecorder = {
    record: (_kind, object, { type, reason, message }) =>
      void recordedEvents.push({ name: object.metadata.name ?? '', line: `${type} ${reason}: ${message}` }),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const reconciles = { claims: 0, volumes: 0 }
  let runningControllers: RunningControllers | undefined

  function start(): RunningControllers {
    const sharedOptions = { client, clock: api.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(sharedOptions)
    const countReconciles = (resource: 'claims' | 'volumes') => ({
      added() {},
      retried() {},
      finished() {},
      started: () => void reconciles[resource]++,
    })
    const metrics = {
      queueObserver: (name: string) => countReconciles(name === 'claim-binding' ? 'claims' : 'volumes'),
      queues: new Set(),
    }
    const { inProcessProvisioners = [], runningProvisioners, bindingMetrics } = options
    const controllers = createBindingControllers({
      ...sharedOptions,
      caches,
      ...(options.shouldStoreEvents ? {} : { events }),
      inProcessProvisioners,
      ...(runningProvisioners ? { runningProvisioners } : {}),
      metrics: metrics as never,
      ...(bindingMetrics ? { bindingMetrics } : {}),
    })
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const run = controllers.run(abort.signal)
    return {
      isBusy: () => controllers.queues.some((queue) => queue.stats().depth + queue.stats().running > 0),
      isWaiting: () => controllers.queues.some((queue) => queue.stats().waiting > 0),
      queueStates: () => controllers.queues.flatMap((queue) => queue.states()),
      whenSynced: () => caches.whenSyncedOrNotServed(abort.signal),
      async stop() {
        abort.abort()
        await run
        await caches.stop()
      },
    }
  }

  function ensureStarted(): RunningControllers {
    runningControllers ??= start()
    return runningControllers
  }

  async function create<T extends KubeObject>(
    kind: Kind<T>,
    object: { metadata: object; spec: object; status?: object },
  ): Promise<Stored<T>> {
    const createdObject = await serverClient.create(kind, object as unknown as T)
    if (!object.status) return createdObject
    const { name, namespace } = createdObject.metadata
    const ref = { name, ...(namespace ? { namespace } : {}) }
    return serverClient.patch(kind, ref, { type: 'merge', body: { status: object.status } }, { subresource: 'status' })
  }

  const fixture: BindingFixture = {
    api,
    client: serverClient,
    reconciles,
    createClaim: (name, { size = '1Gi', spec = {}, annotations = {}, metadata = {}, status } = {}) =>
      create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name, annotations, ...metadata },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...spec },
        ...(status ? { status } : {}),
      }),
    createVolume: (name, { size = '1Gi', spec = {}, annotations = {}, metadata = {}, claim, status } = {}) =>
      create(persistentVolumeKind, {
        metadata: { name, annotations, ...metadata },
        spec: {
          capacity: { storage: size },
          accessModes: ['ReadWriteOnce'],
          hostPath: { path: `/${name}` },
          ...(claim ? { claimRef: { namespace: 'default', ...claim } } : {}),
          ...spec,
        },
        ...(status ? { status } : {}),
      }),
    createClass: async (name, { provisioner = 'disk.example.com', ...fields } = {}) =>
      void (await serverClient.create(storageClassKind, {
        metadata: { name, ...fields.metadata },
        provisioner,
        ...fields.spec,
      })),
    createPod: async (name, claimName, { nodeName, phase } = {}) =>
      void (await create(podKind, {
        metadata: { namespace: 'default', name },
        spec: {
          ...(nodeName ? { nodeName } : {}),
          containers: [{ name: 'c', image: 'i' }],
          volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
        },
        ...(phase ? { status: { phase } } : {}),
      })),
    getClaim: (name) => serverClient.get(persistentVolumeClaimKind, { namespace: 'default', name }),
    getVolume: (name) => serverClient.get(persistentVolumeKind, { name }),
    start: () => void ensureStarted(),
    async settle() {
      const controllers = ensureStarted()
      await controllers.whenSynced()
      let revision = -1
      for (let idleTurns = 0; idleTurns < IDLE_TURNS; idleTurns++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (controllers.isBusy() || api.store.revision !== revision) idleTurns = 0
        revision = api.store.revision
        if (idleTurns === IDLE_TURNS - 1 && controllers.isWaiting()) {
          await api.clock.advance(60_000)
          idleTurns = 0
        }
      }
    },
    async stopControllers() {
      await runningControllers?.stop()
      runningControllers = undefined
    },
    eventsOf: (name) => recordedEvents.filter((event) => event.name === name).map(({ line }) => line),
    queueStates: () =>
      Object.fromEntries(
        (runningControllers?.queueStates() ?? []).map(({ key, is, message }) => [key, `${is}: ${message}`]),
      ),
    async stop() {
      await fixture.stopControllers()
      await api.store.close()
    },
  }
  return fixture
}

interface RunningControllers {
  isBusy(): boolean
  isWaiting(): boolean
  queueStates(): { readonly key: string; readonly is: string; readonly message?: string }[]
  whenSynced(): Promise<boolean>
  stop(): Promise<void>
}

const disableAtomicCommits = (client: Client): Client => ({
  ...client,
  commitsAtomically: async () => false,
  commit: (writes, shared) => commitOneByOne(client, writes, shared),
})

/** Returns the fields of the claim and the volume that a binding sets. */
export const summarizeBinding = (claim: Claim, volume: Volume) => ({
  claim: {
    phase: claim.status?.phase,
    volumeName: claim.spec?.volumeName,
    capacity: claim.status?.capacity?.storage,
    annotations: Object.keys(claim.metadata.annotations ?? {}).sort(),
  },
  volume: {
    phase: volume.status?.phase,
    owner: volume.spec?.claimRef && keyOfObject({ metadata: volume.spec.claimRef }),
    isOwned: volume.spec?.claimRef?.uid === claim.metadata.uid,
    annotations: Object.keys(volume.metadata.annotations ?? {}).sort(),
  },
})

/** Returns a client whose watches omit the hidden claim and volume. Reads and writes include them. */
export function hideFromWatches(client: Client, hiddenNames: { claim?: string; volume?: string }): Client {
  async function* watchVisible<T extends KubeObject>(
    kind: Kind<T>,
    request: WatchRequest,
  ): AsyncGenerator<WatchEvent<T>> {
    const name = kind.kind === persistentVolumeClaimKind.kind ? () => hiddenNames.claim : () => hiddenNames.volume
    const isFiltered = [persistentVolumeClaimKind.kind, persistentVolumeKind.kind].includes(kind.kind)
    for await (const event of client.watch(kind, request)) {
      if (isFiltered && event.type !== 'bookmark' && event.object.metadata.name === name()) continue
      yield event
    }
  }
  return { ...client, watch: watchVisible }
}
