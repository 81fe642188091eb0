// Runs the binding controllers on a real API server with a store in memory: creates objects with any status, runs until
// idle, and returns objects and recorded events.
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
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
  /** Creates an object, with its status if given. */
  claim(name: string, parts?: ClaimParts): Promise<Claim>
  volume(name: string, parts?: VolumeParts): Promise<Volume>
  storageClass(name: string, parts?: ClassParts): Promise<void>
  pod(name: string, claimName: string, parts?: { nodeName?: string; phase?: string }): Promise<void>
  getClaim(name: string): Promise<Claim>
  getVolume(name: string): Promise<Volume>
  start(): void
  /** Starts the controllers if they are not running, and waits until they are idle. */
  settle(): Promise<void>
  /** Stops the controllers; the next start has empty caches. */
  halt(): Promise<void>
  /** Events recorded on an object: `Type Reason: message`. */
  eventsOf(name: string): readonly string[]
  /** Outcomes of keys that are not done, by key. */
  standings(): Readonly<Record<string, string>>
  readonly reconciles: { readonly claims: number; readonly volumes: number }
  stop(): Promise<void>
}

export interface Parts {
  readonly metadata?: object
  readonly annotations?: Readonly<Record<string, string>>
  readonly status?: object
}
export interface ClassParts {
  readonly provisioner?: string
  readonly metadata?: object
  readonly spec?: object
}
export type ClaimParts = Parts & { readonly size?: string; readonly spec?: object }
export type VolumeParts = Parts & { readonly size?: string; readonly spec?: object; readonly claim?: object }

export interface BindingFixtureOptions extends Partial<Pick<BindingOptions, 'inProcess' | 'bindingMetrics'>> {
  /** A server without atomic commits. */
  readonly oneByOne?: boolean
  /** Events are stored as objects instead of being returned by `eventsOf`. */
  readonly ownEvents?: boolean
  /** Wraps the client between the binder and the server. */
  readonly through?: (client: Client) => Client
}

/** Idle turns of the event loop after which the controllers count as idle. */
const STILL_TURNS = 12

export async function createBindingFixture(options: BindingFixtureOptions = {}): Promise<BindingFixture> {
  const api = await createServerFixture()
  const direct = inProcessClient(api.server.objects, SYSTEM_USER)
  const { through = (client) => client } = options
  const client = through(options.oneByOne ? oneByOne(direct) : direct)
  const recorded: { readonly name: string; readonly text: string }[] = []
  const events: EventRecorder = {
    record: (_kind, object, { type, reason, message }) =>
      void recorded.push({ name: object.metadata.name ?? '', text: `${type} ${reason}: ${message}` }),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const reconciles = { claims: 0, volumes: 0 }
  let running: Running | undefined

  function start(): Running {
    const common = { client, clock: api.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(common)
    const counting = (which: 'claims' | 'volumes') => ({
      added() {},
      retried() {},
      finished() {},
      started: () => void reconciles[which]++,
    })
    const metrics = {
      queueObserver: (name: string) => counting(name === 'claim-binding' ? 'claims' : 'volumes'),
      queues: new Set(),
    }
    const { inProcess = [], bindingMetrics } = options
    const controllers = createBindingControllers({
      ...common,
      caches,
      ...(options.ownEvents ? {} : { events }),
      inProcess,
      metrics: metrics as never,
      ...(bindingMetrics ? { bindingMetrics } : {}),
    })
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const over = controllers.run(abort.signal)
    return {
      isBusy: () => controllers.queues.some((queue) => queue.stats().depth + queue.stats().running > 0),
      isWaiting: () => controllers.queues.some((queue) => queue.stats().waiting > 0),
      standings: () => controllers.queues.flatMap((queue) => queue.standings()),
      whenSynced: () => caches.whenAnswered(abort.signal),
      async stop() {
        abort.abort()
        await over
        await caches.stop()
      },
    }
  }

  function begin(): Running {
    running ??= start()
    return running
  }

  async function create<T extends KubeObject>(
    kind: Kind<T>,
    object: { metadata: object; spec: object; status?: object },
  ): Promise<Stored<T>> {
    const created = await direct.create(kind, object as unknown as T)
    if (!object.status) return created
    const { name, namespace } = created.metadata
    const ref = { name, ...(namespace ? { namespace } : {}) }
    return direct.patch(kind, ref, { type: 'merge', body: { status: object.status } }, { subresource: 'status' })
  }

  const fixture: BindingFixture = {
    api,
    client,
    reconciles,
    claim: (name, { size = '1Gi', spec = {}, annotations = {}, metadata = {}, status } = {}) =>
      create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name, annotations, ...metadata },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...spec },
        ...(status ? { status } : {}),
      }),
    volume: (name, { size = '1Gi', spec = {}, annotations = {}, metadata = {}, claim, status } = {}) =>
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
    storageClass: async (name, { provisioner = 'disk.example.com', ...parts } = {}) =>
      void (await direct.create(storageClassKind, {
        metadata: { name, ...parts.metadata },
        provisioner,
        ...parts.spec,
      })),
    pod: async (name, claimName, { nodeName, phase } = {}) =>
      void (await create(podKind, {
        metadata: { namespace: 'default', name },
        spec: {
          ...(nodeName ? { nodeName } : {}),
          containers: [{ name: 'c', image: 'i' }],
          volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
        },
        ...(phase ? { status: { phase } } : {}),
      })),
    getClaim: (name) => direct.get(persistentVolumeClaimKind, { namespace: 'default', name }),
    getVolume: (name) => direct.get(persistentVolumeKind, { name }),
    start: () => void begin(),
    async settle() {
      const running = begin()
      await running.whenSynced()
      let revision = -1
      for (let still = 0; still < STILL_TURNS; still++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (running.isBusy() || api.store.revision !== revision) still = 0
        revision = api.store.revision
        if (still === STILL_TURNS - 1 && running.isWaiting()) {
          await api.clock.advance(60_000)
          still = 0
        }
      }
    },
    async halt() {
      await running?.stop()
      running = undefined
    },
    eventsOf: (name) => recorded.filter((one) => one.name === name).map(({ text }) => text),
    standings: () =>
      Object.fromEntries((running?.standings() ?? []).map(({ key, is, because }) => [key, `${is}: ${because}`])),
    async stop() {
      await fixture.halt()
      await api.store.close()
    },
  }
  return fixture
}

interface Running {
  isBusy(): boolean
  isWaiting(): boolean
  standings(): { readonly key: string; readonly is: string; readonly because?: string }[]
  whenSynced(): Promise<boolean>
  stop(): Promise<void>
}

const oneByOne = (client: Client): Client => ({
  ...client,
  commitsAtomically: async () => false,
  commit: (writes, shared) => commitOneByOne(client, writes, shared),
})

/** The result of a binding on both sides, for comparison. */
export const summary = (claim: Claim, volume: Volume) => ({
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

/** A client whose watches do not show one claim or volume; reads and writes do. */
export function hiding(client: Client, hidden: { claim?: string; volume?: string }): Client {
  async function* shown<T extends KubeObject>(kind: Kind<T>, request: WatchRequest): AsyncGenerator<WatchEvent<T>> {
    const name = kind.kind === persistentVolumeClaimKind.kind ? () => hidden.claim : () => hidden.volume
    const isWatched = [persistentVolumeClaimKind.kind, persistentVolumeKind.kind].includes(kind.kind)
    for await (const event of client.watch(kind, request)) {
      if (isWatched && event.type !== 'bookmark' && event.object.metadata.name === name()) continue
      yield event
    }
  }
  return { ...client, watch: shown }
}
