// Fixture of the expansion tests: an API server with a quota, a fake CSI driver, bound claims, a simulated node, and
// controller processes that can be stopped or killed.
import { setMaxListeners } from 'node:events'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { createServerFixture, type ServerFixture, type ServerFixtureOptions } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import {
  createFakeDriver,
  type FakeDriver,
  type FakeRule,
  type FakeSettings,
  fakeSettings,
} from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, readDriverFacts } from '../../csi/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type EventDetails, type SilentLanes } from '../../runtime/index.ts'
import { queueMetrics } from '../../runtime/queue-metrics.fixture.ts'
import { NODE_EXPANSION_NOT_REQUIRED, PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  completedOnNodePatch,
  formatTime,
  nodeFailedPatch,
  nodeInfeasiblePatch,
  nodeStartedPatch,
  type StatusPatch,
} from '../../volumes/resize-status.ts'
import {
  type CrashInjector,
  createCrashInjector,
  type ProcessOptions,
  processClient,
} from '../provisioning/provisioning.fixture.ts'
import {
  changeKey,
  createVolumeChangeControllers,
  type ServedNode,
  type VolumeChange,
} from '../volume-changes/index.ts'
import { canExpand, createExpanding } from './expanding.ts'
import { createExpansionUnsupported } from './expansion-unsupported.ts'
import type { ExpandingOptions } from './options.ts'

export const DRIVER = 'disks.example.com'
const CLASS = 'expandable'

export interface ExpandingFixtureOptions {
  readonly driver?: Partial<FakeSettings>
  readonly server?: ServerFixtureOptions
}

export interface StartOptions extends Pick<ProcessOptions, 'isAtomic' | 'killAt' | 'intercept' | 'election'> {
  readonly options?: ExpandingOptions
  readonly node?: ServedNode
  readonly silentNodes?: SilentLanes
  /** Changes that the process performs in addition to expansion. */
  readonly changes?: readonly VolumeChange[]
  /** Called with a key at the start and the end of each of its reconciles. */
  readonly onQueueChange?: (key: string) => void
}

export interface ClaimOptions {
  /** Requested size and capacity of the claim. */
  readonly size?: string
  /** Size of the volume in the driver. Default: `size`. */
  readonly actualBytes?: number
  readonly pv?: object
  readonly metadata?: object
  readonly pvMetadata?: object
  readonly accessModes?: readonly string[]
  /** Additional fields of the claim's status. */
  readonly status?: object
}

/** The sizes of a claim that an expansion changes: `mark` is spec.allocatedResources, `alloc` is status.allocatedResources. */
export interface ClaimView {
  readonly req: string
  readonly mark?: string
  readonly alloc?: string
  readonly state?: string
  readonly cap: string
  readonly pvcap: string
  readonly preResize?: string
  readonly conditions: readonly string[]
  readonly quota: string
}

export type ExpandingFixture = Awaited<ReturnType<typeof createExpandingFixture>>

export async function createExpandingFixture({
  driver: settings = {},
  server: serverOptions,
}: ExpandingFixtureOptions = {}) {
  const server: ServerFixture = await createServerFixture(serverOptions)
  const client = server.client()
  const fake = createFakeDriver({ clock: server.clock, settings: fakeSettings({ name: DRIVER, ...settings }) })
  const driver = createDriverClient(fake)
  const facts = await readDriverFacts(driver)
  const recordedEvents: (EventDetails & { readonly objectName: string })[] = []
  const stops: (() => Promise<void>)[] = []
  /** Views of the claim `data`, one after each write of a controller. */
  const recordedViews: ClaimView[] = []

  await client.create(storageClassKind, {
    metadata: { name: CLASS },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  } as never)
  const hard = { 'requests.storage': '1Ti' }
  await client.create(resourceQuotaKind, { metadata: { namespace: 'default', name: 'team' }, spec: { hard } } as never)
  await patchStatus(resourceQuotaKind, 'team', { hard, used: { 'requests.storage': '0' } })

  function patchStatus(kind: Kind, name: string, status: object, type: 'merge' | 'strategic' = 'merge') {
    const ref = kind.namespaced ? { namespace: 'default', name } : { name }
    return client.patch(kind, ref, { type, body: { status } }, { subresource: 'status' })
  }

  /** Returns a client that records a view after each write. */
  function recordViews(innerClient: Client): Client {
    const recordAfter =
      <A extends unknown[], R>(verb: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        const result = await verb(...args)
        if (await fixture.claim('data')) recordedViews.push(await fixture.view())
        return result
      }
    const { patch, commit } = innerClient
    return { ...innerClient, patch: recordAfter(patch) as Client['patch'], commit: recordAfter(commit) }
  }

  function start(options: StartOptions = {}) {
    const injector = createCrashInjector(options.killAt)
    const isAtomic = options.isAtomic ?? !server.isStock
    const resizerClient = server.clientOf('resizer')
    const { commit } = resizerClient
    const controllerClient = isAtomic
      ? processClient(recordViews(resizerClient), injector, true, options.intercept)
      : processClient({ ...recordViews(resizerClient), commit }, injector, false, options.intercept)
    const caches = createCacheSet({
      client: resizerClient,
      clock: server.clock,
      random: () => 0.5,
      reductions: GUARDED_CACHES,
    })
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    const events = {
      record: (kind: Kind, { metadata }: Readonly<KubeObject>, event: EventDetails) => {
        if (!injector.hasCrashed) recordedEvents.push({ ...event, objectName: `${kind.kind} ${metadata.name}` })
      },
    }
    const deps = { client: controllerClient, caches, clock: server.clock, random: () => 0.5, log: silentLog }
    const { election, node, silentNodes } = options
    const crashingDriver = crashableDriver(driver, injector)
    const changes = [
      canExpand(facts)
        ? createExpanding({ ...deps, election, driver: crashingDriver, facts, events, options: options.options })
        : createExpansionUnsupported({ facts, events }),
      ...(options.changes ?? []),
    ]
    const metrics = options.onQueueChange && queueMetrics(options.onQueueChange)
    const controllers = createVolumeChangeControllers({ ...deps, metrics, facts, changes, node, silentNodes })
    const run = controllers.run(abort.signal)
    injector.onCrash(() => void caches.stop())
    const stop = async () => {
      abort.abort()
      if (!injector.hasCrashed) await run
      await caches.stop()
    }
    stops.push(stop)
    return {
      calls: injector.calls,
      get hasCrashed() {
        return injector.hasCrashed
      },
      queueState: (name = 'data', change: VolumeChange['name'] = 'expanding') =>
        controllers.queues[0]?.stateOf(changeKey(`default/${name}`, change)),
      stop,
    }
  }

  /** Creates a volume in the driver, its PersistentVolume and a claim bound to it. */
  async function createClaim(name = 'data', options: ClaimOptions = {}) {
    const { size = '10Gi', pv = {}, accessModes = ['ReadWriteOnce'], status = {} } = options
    const handle = `vol-${name}`
    fake.state.volumes[handle] = {
      id: handle,
      name,
      order: ++fake.state.sequence,
      pool: 'pool',
      copies: 1,
      capacityBytes: options.actualBytes ?? Number(quantityToBytes(size)),
      createRequest: {
        capabilities: ['mount ext4 SINGLE_NODE_WRITER'],
        parameters: {},
        mutableParameters: {},
        source: undefined,
      },
      mutableParameters: {},
      attachments: {},
      onNodes: {},
    }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name, ...options.metadata },
      spec: { accessModes, storageClassName: CLASS, volumeName: name, resources: { requests: { storage: size } } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name, ...options.pvMetadata },
      spec: {
        capacity: { storage: size },
        accessModes,
        storageClassName: CLASS,
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: handle, fsType: 'ext4' },
        ...pv,
      },
    } as never)
    await patchStatus(persistentVolumeKind, name, { phase: 'Bound' })
    await patchStatus(persistentVolumeClaimKind, name, {
      phase: 'Bound',
      accessModes,
      capacity: { storage: size },
      ...status,
    })
    return claim
  }

  const getOrUndefined = async <T>(read: Promise<T>): Promise<T | undefined> => read.catch(() => undefined)
  const saveAsNode = (patch: StatusPatch, name: string) =>
    patchStatus(persistentVolumeClaimKind, name, patch.status, 'strategic')
  const nowText = () => formatTime(server.clock.nowMs())

  const fixture = {
    server,
    client,
    fake,
    facts,
    events: recordedEvents,
    recordedViews,
    start,
    createClaim,
    patchStatus,
    eventReasons: (objectName = 'PersistentVolumeClaim data') =>
      recordedEvents.filter((event) => event.objectName === objectName).map(({ reason }) => reason),
    claim: (name = 'data'): Promise<Readonly<PersistentVolumeClaim> | undefined> =>
      getOrUndefined(client.get(persistentVolumeClaimKind, { namespace: 'default', name })),
    volume: (name = 'data'): Promise<Readonly<PersistentVolume> | undefined> =>
      getOrUndefined(client.get(persistentVolumeKind, { name })),
    /** Edits the requested size, as a user does. */
    request: (storage: string, name = 'data') =>
      client.patch(
        persistentVolumeClaimKind,
        { namespace: 'default', name },
        { type: 'merge', body: { spec: { resources: { requests: { storage } } } } },
      ),
    createPod: (name: string, claimName = 'data') =>
      client.create(podKind, {
        metadata: { namespace: 'default', name },
        spec: {
          volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
          containers: [{ name: 'main', image: 'any' }],
          terminationGracePeriodSeconds: 0,
        },
      } as never),
    terminatePod: (name: string, phase = 'Succeeded') => patchStatus(podKind, name, { phase }),
    deletePod: (name: string) => client.delete(podKind, { namespace: 'default', name }, { gracePeriodSeconds: 0 }),
    setCapacityTracking: (storageCapacity = true) =>
      client.create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity } } as never),
    createCapacity: (name: string, capacity: object) =>
      client.create(csiStorageCapacityKind, {
        metadata: { namespace: 'default', name },
        storageClassName: CLASS,
        nodeTopology: {},
        ...capacity,
      } as never),
    setCapacity: (name: string, capacity: string) =>
      client.patch(csiStorageCapacityKind, { namespace: 'default', name }, { type: 'merge', body: { capacity } }),
    startNodeExpansion: (name = 'data') => saveAsNode(nodeStartedPatch(), name),
    completeNodeExpansion: (size: string, name = 'data') => saveAsNode(completedOnNodePatch(size), name),
    rejectNodeExpansion: (name = 'data') =>
      saveAsNode(nodeInfeasiblePatch({ message: 'too large for the node' }, nowText()), name),
    failNodeExpansion: (name = 'data') =>
      saveAsNode(nodeFailedPatch({ message: 'temporary failure' }, nowText()), name),
    setRules: (...rules: readonly FakeRule[]) => fake.script.setRules(rules),
    /** Sets the effect of every ControllerExpandVolume call, or of the next `times` calls. */
    setExpandEffect: (effect: NonNullable<FakeRule['effect']>, times?: number) =>
      fake.script.setRules([{ method: 'ControllerExpandVolume', effect, ...(times ? { times } : {}) }]),
    /** Returns the requested sizes of all ControllerExpandVolume calls so far. */
    expandCalls: (name = 'data'): number[] =>
      fake.record.calls
        .filter(({ method, volume }) => method === 'ControllerExpandVolume' && volume === name)
        .map(({ request }) =>
          Number((request as { capacityRange?: { requiredBytes: bigint } }).capacityRange?.requiredBytes),
        ),
    bytes: (name = 'data') => fake.state.volumes[`vol-${name}`]?.capacityBytes,
    async view(name = 'data'): Promise<ClaimView> {
      const [claim, volume] = [await fixture.claim(name), await fixture.volume(name)]
      const quota = await client.get(resourceQuotaKind, { namespace: 'default', name: 'team' })
      const { spec, status } = claim!
      const optionalFields = {
        mark: spec?.allocatedResources?.storage,
        alloc: status?.allocatedResources?.storage,
        state: status?.allocatedResourceStatuses?.storage,
        preResize: volume?.metadata.annotations?.[PRE_RESIZE_CAPACITY],
      }
      return {
        req: spec?.resources?.requests?.storage ?? '',
        cap: status?.capacity?.storage ?? '',
        pvcap: volume?.spec?.capacity?.storage ?? '',
        conditions: (status?.conditions ?? []).map(({ type }) => type).sort(),
        quota: quota.status?.used?.['requests.storage'] ?? '',
        ...Object.fromEntries(Object.entries(optionalFields).filter(([, value]) => value !== undefined)),
      }
    },
    isNodeExpansionNotRequired: async (name = 'data') =>
      (await fixture.claim(name))?.metadata.annotations?.[NODE_EXPANSION_NOT_REQUIRED] === 'true',
    /** Runs the event loop and advances the clock until the condition holds. */
    async waitUntil(condition: () => unknown, description: string, { shouldAdvanceClock = true } = {}) {
      for (let turn = 0; turn < 20_000; turn++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (shouldAdvanceClock && turn % 40 === 39) await server.clock.advance(1_000)
      }
      throw new Error(
        `still waiting for: ${description}; ${JSON.stringify({ view: await fixture.view(), recordedEvents }, null, 1)}`,
      )
    },
    waitForState: (state: string | undefined, name = 'data') =>
      fixture.waitUntil(async () => (await fixture.view(name)).state === state, `state ${state}`),
    /** Runs 150 turns of the event loop, without advancing the clock. */
    async settle() {
      for (let turn = 0; turn < 150; turn++) await new Promise((resolve) => setImmediate(resolve))
    },
    async close() {
      fake.script.release()
      for (const stop of stops.splice(0)) await stop()
      await server.store.close()
    },
  }
  return fixture
}

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

function createDriverClient(fake: FakeDriver): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('node-1') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    return create(method.output, (await service[method.localName]!(request, { signal })) as never)
  })
}

const crashableDriver = (driver: CsiDriver, injector: CrashInjector): CsiDriver => ({
  ...driver,
  controller: injector.wrapAll(driver.controller, ['controllerExpandVolume']),
})
