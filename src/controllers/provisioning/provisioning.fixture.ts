// Test fixture with an API server, a storage, and provisioning processes that can be stopped or crashed.
// `runOtherControllers` performs the writes of the binding and protection controllers.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { commitOneByOne } from '../../client/commit-one-by-one.ts'
import type { Client } from '../../client/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type EventDetails } from '../../runtime/index.ts'
import { CLAIM_PROTECTION_FINALIZER, PROVISIONER, VOLUME_PROTECTION_FINALIZER } from '../../volumes/names.ts'
import { parseEntries } from './intent-entries.ts'
import { INTENTS_ANNOTATION } from './intent-journal.ts'
import type { ProvisioningOptions } from './options.ts'
import type { Provisioner } from './provisioner.ts'
import { createProvisioningControllers, type ProvisioningDeps } from './provisioning-controllers.ts'
import { createScriptedStorage, type ScriptedStorage } from './scripted-provisioner.fixture.ts'

export const DISKS = 'disks.example.com'
/** The Lease of a process with a journal of intents. */
export const INTENT_LEASE = { namespace: 'kube-system', name: 'stowage-intents-disks' }

interface RecordedEvent extends EventDetails {
  readonly objectName: string
}

export interface ProcessOptions
  extends Partial<Pick<ProvisioningDeps, 'election' | 'provisioningMetrics' | 'runningProvisioners'>> {
  readonly provisioner?: Provisioner
  readonly options?: ProvisioningOptions
  /** Whether the API server has atomic commits. Default: true, except on a stock server. */
  readonly isAtomic?: boolean
  /** Called before every call to the server. If it throws, the call fails with that error. */
  readonly intercept?: (verb: string, args: readonly any[]) => void | Promise<void>
  /** Crashes the process at its n-th call, from 0, before the call takes effect or before its reply arrives. */
  readonly killAt?: { readonly call: number; readonly when: 'before' | 'after' }
}

interface Process {
  readonly calls: readonly string[]
  readonly hasCrashed: boolean
  queueState(key: string): { readonly is: string; readonly message?: string; readonly nextAtMs?: number } | undefined
  stop(): Promise<void>
}

export interface ProvisioningFixture {
  readonly apiServer: ServerFixture
  readonly client: Client
  readonly storage: ScriptedStorage
  readonly events: RecordedEvent[]
  eventReasons(): string[]
  start(options?: ProcessOptions): Process
  createClass(name: string, overrides?: Partial<StorageClass>): Promise<Readonly<StorageClass>>
  createClaim(name: string, overrides?: ClaimOptions): Promise<Readonly<PersistentVolumeClaim>>
  claim(name: string): Promise<Readonly<PersistentVolumeClaim> | undefined>
  volume(name: string): Promise<Readonly<PersistentVolume> | undefined>
  volumes(): Promise<readonly Readonly<PersistentVolume>[]>
  /** Returns the names of the claims in the journal. */
  journaledClaims(): Promise<string[]>
  release(volumeName: string): Promise<void>
  /** Binds claims, releases volumes and removes protection finalizers once. */
  runOtherControllers(): Promise<void>
  waitUntil(condition: () => unknown, goal: string, onTurn?: () => Promise<void>): Promise<void>
  /** Runs 100 turns of the event loop, without advancing the clock. */
  settle(): Promise<void>
  close(): Promise<void>
}

interface ClaimOptions {
  readonly storageClassName?: string
  readonly provisioner?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: Partial<PersistentVolumeClaim['spec']>
  readonly size?: string
}

export async function createProvisioningFixture(): Promise<ProvisioningFixture> {
  const apiServer = await createServerFixture()
  const client = apiServer.client()
  const storage = createScriptedStorage()
  const events: RecordedEvent[] = []
  const stops: (() => Promise<void>)[] = []

  function start(options: ProcessOptions = {}): Process {
    const { provisioner = storage.provisioner(), isAtomic = !apiServer.isStock } = options
    const injector = createCrashInjector(options.killAt)
    const hasPlugin = !options.options?.bindsOnSave
    // A provisioner that is written with the SDK has both roles.
    const provisionerClient = hasPlugin ? apiServer.clientOf('provisioner', 'sdk') : apiServer.clientOf('provisioner')
    const processClientWithFaults = processClient(provisionerClient, injector, isAtomic, options.intercept)
    const caches = createCacheSet({
      client: provisionerClient,
      clock: apiServer.clock,
      random: () => 0.5,
      reductions: hasPlugin ? undefined : GUARDED_CACHES,
    })
    const abort = new AbortController()
    /**
     * Until the controllers are created, random numbers differ per process, so processes have different UUIDs.
     * Afterwards random() is constant, so backoff has no jitter.
     */
    let startDraws: number | undefined = stops.length
    const controllers = createProvisioningControllers({
      client: processClientWithFaults,
      caches,
      clock: apiServer.clock,
      random: () => (startDraws === undefined ? 0.5 : (startDraws++ % 100) / 100),
      log: silentLog,
      provisioner: injector.wrapAll(provisioner, ['provision', 'delete']),
      options: options.options ?? {},
      events: {
        record: (_kind, object, event) => {
          if (!injector.hasCrashed) events.push({ ...event, objectName: object.metadata.name ?? '' })
        },
      },
      ...(options.election ? { election: options.election } : {}),
      ...(options.runningProvisioners ? { runningProvisioners: options.runningProvisioners } : {}),
      ...(options.provisioningMetrics ? { provisioningMetrics: options.provisioningMetrics } : {}),
    })
    startDraws = undefined
    const running = controllers.run(abort.signal)
    injector.onCrash(() => void caches.stop())
    const stop = async () => {
      abort.abort()
      if (!injector.hasCrashed) await running // a crashed process never receives the reply it waits for
      await caches.stop()
    }
    stops.push(stop)
    return {
      calls: injector.calls,
      get hasCrashed() {
        return injector.hasCrashed
      },
      queueState: (key) => controllers.queues.map((queue) => queue.stateOf(key)).find(Boolean),
      stop,
    }
  }

  async function runOtherControllers(): Promise<void> {
    const claims = (await client.list(persistentVolumeClaimKind)).items
    for (const volume of (await client.list(persistentVolumeKind)).items) await bindOrRelease(volume, claims)
    for (const claim of claims) await unprotect(persistentVolumeClaimKind, claim, CLAIM_PROTECTION_FINALIZER)
    for (const volume of (await client.list(persistentVolumeKind)).items) {
      if (volume.status?.phase !== 'Bound') {
        await unprotect(persistentVolumeKind, volume, VOLUME_PROTECTION_FINALIZER)
      }
    }
  }

  async function bindOrRelease(
    volume: Readonly<PersistentVolume>,
    claims: readonly Readonly<PersistentVolumeClaim>[],
  ): Promise<void> {
    const { name = '' } = volume.metadata
    const { claimRef } = volume.spec ?? {}
    if (!claimRef) return
    const claim = claims.find(({ metadata }) => metadata.uid === claimRef.uid)
    const isBoundToOtherVolume = claim?.spec?.volumeName !== undefined && claim.spec.volumeName !== name
    const phase = claim && !isBoundToOtherVolume ? 'Bound' : 'Released'
    if (volume.status?.phase !== phase) await setPhase(name, phase)
    if (!claim || isBoundToOtherVolume || claim.spec?.volumeName) return
    const ref = { namespace: 'default', name: claim.metadata.name ?? '' }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { spec: { volumeName: name } } })
    const body = { status: { phase: 'Bound' } }
    await client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, { subresource: 'status' })
  }

  const setPhase = (name: string, phase: string) =>
    client.patch(
      persistentVolumeKind,
      { name },
      { type: 'merge', body: { status: { phase } } },
      { subresource: 'status' },
    )

  async function unprotect<T extends KubeObject>(
    kind: Kind<T>,
    { metadata }: Readonly<KubeObject>,
    finalizer: string,
  ): Promise<void> {
    const { name = '', namespace } = metadata
    if (!metadata.deletionTimestamp || !metadata.finalizers?.includes(finalizer)) return
    const body = { metadata: { '$deleteFromPrimitiveList/finalizers': [finalizer] } }
    await client.patch(kind, { namespace, name }, { type: 'strategic', body })
  }

  const undefinedIfMissing = async <T>(request: Promise<T>): Promise<T | undefined> => request.catch(() => undefined)

  return {
    apiServer,
    client,
    storage,
    events,
    eventReasons: () => events.map(({ reason }) => reason),
    start,
    createClass: (name, overrides = {}) =>
      client.create(storageClassKind, { metadata: { name }, provisioner: DISKS, ...overrides }),
    createClaim: (name, { storageClassName = 'fast', provisioner = DISKS, annotations, spec, size = '1Gi' } = {}) =>
      client.create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name, annotations: { [PROVISIONER]: provisioner, ...annotations } },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName,
          resources: { requests: { storage: size } },
          ...spec,
        },
      }),
    claim: (name) => undefinedIfMissing(client.get(persistentVolumeClaimKind, { namespace: 'default', name })),
    volume: (name) => undefinedIfMissing(client.get(persistentVolumeKind, { name })),
    volumes: async () => (await client.list(persistentVolumeKind)).items,
    async journaledClaims() {
      const lease = await undefinedIfMissing(client.get(leaseKind, INTENT_LEASE))
      const entries = parseEntries(lease?.metadata.annotations?.[INTENTS_ANNOTATION], 'the lease')
      return [...entries.values()].map(({ claim }) => claim.metadata.name)
    },
    release: async (name) => void (await setPhase(name, 'Released')),
    runOtherControllers,
    async waitUntil(condition, goal, onTurn) {
      for (let attempt = 0; attempt < 20_000; attempt++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (attempt % 10 === 9) await onTurn?.()
        if (attempt % 40 === 39) await apiServer.clock.advance(attempt < 4_000 ? 1_000 : 30_000)
      }
      throw new Error(`still waiting for: ${goal}; events so far: ${JSON.stringify(events)}`)
    },
    async settle() {
      for (let attempt = 0; attempt < 100; attempt++) await new Promise((resolve) => setImmediate(resolve))
    },
    async close() {
      for (const stop of stops.splice(0)) await stop()
      await apiServer.store.close()
    },
  }
}

export interface CrashInjector {
  readonly calls: string[]
  readonly hasCrashed: boolean
  onCrash(run: () => void): void
  call<T>(name: string, run: () => Promise<T>): Promise<T>
  wrapAll<T extends object>(target: T, names: readonly (keyof T & string)[]): T
}

/** Counts the calls of a process and crashes it at one of them. Later calls have no effect and never return. */
export function createCrashInjector(killAt: ProcessOptions['killAt']): CrashInjector {
  const calls: string[] = []
  const crashListeners: (() => void)[] = []
  let hasCrashed = false
  const never = <T>(): Promise<T> => new Promise<T>(() => {})
  const crash = () => {
    hasCrashed = true
    for (const run of crashListeners) run()
  }
  const injector: CrashInjector = {
    calls,
    get hasCrashed() {
      return hasCrashed
    },
    onCrash: (run) => void crashListeners.push(run),
    async call(name, run) {
      if (hasCrashed) return never()
      const isCrashPoint = calls.length === killAt?.call
      calls.push(name)
      if (isCrashPoint && killAt?.when === 'before') {
        crash()
        return never()
      }
      const finish = await run().then(
        (value) => () => value,
        (error) => () => {
          throw error
        },
      )
      if (isCrashPoint) crash()
      return hasCrashed ? never() : finish()
    },
    wrapAll(target, names) {
      const wrapped: any = { ...target }
      for (const name of names) {
        const method = (target as any)[name]
        if (method) wrapped[name] = (...args: any[]) => injector.call(name, async () => method.apply(target, args))
      }
      return wrapped
    },
  }
  return injector
}

export function processClient(
  base: Client,
  injector: CrashInjector,
  isAtomic: boolean,
  intercept: ProcessOptions['intercept'],
): Client {
  const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete', 'commit'] as const
  const intercepted: any = { ...base }
  for (const verb of verbs) {
    intercepted[verb] = async (...args: any[]) => {
      await intercept?.(verb, args)
      return (base[verb] as any)(...args)
    }
  }
  const client: Client = injector.wrapAll(intercepted as Client, verbs)
  if (isAtomic) return client
  const sequentialClient: Client = {
    ...client,
    commitsAtomically: async () => false,
    commit: (writes, shared) => commitOneByOne(client, writes, shared),
  }
  return sequentialClient
}
