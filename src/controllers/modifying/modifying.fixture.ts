// Fixture of the modification tests: an API server, a fake CSI driver, bound claims, and controller processes that can be
// stopped or killed.
import { setMaxListeners } from 'node:events'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { createServerFixture, type ServerFixtureOptions } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import {
  createFakeDriver,
  type FakeDriver,
  type FakeRule,
  type FakeSettings,
  fakeSettings,
} from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, readDriverFacts, serializeCalls } from '../../csi/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type EventDetails, type SilentLanes } from '../../runtime/index.ts'
import { createExpanding } from '../expanding/index.ts'
import { createCrashInjector, type ProcessOptions, processClient } from '../provisioning/provisioning.fixture.ts'
import {
  changeKey,
  createChangeThrottle,
  createVolumeChangeControllers,
  type ThrottleOptions,
  type VolumeChange,
} from '../volume-changes/index.ts'
import { createModifying, type ModifyingMetrics, type ModifyingOptions } from './index.ts'

const DRIVER = 'disks.example.com'

export interface ModifyingFixtureOptions extends Pick<ServerFixtureOptions, 'gates' | 'runtimeConfig' | 'medium'> {
  readonly settings?: Partial<FakeSettings>
  /** The driver of an earlier fixture, to simulate a restart of the server. */
  readonly fake?: FakeDriver
}

export interface StartOptions extends Pick<ProcessOptions, 'isAtomic' | 'killAt' | 'intercept'> {
  readonly options?: ModifyingOptions
  readonly metrics?: ModifyingMetrics
  readonly gates?: FeatureGates
  readonly workers?: number
  readonly throttle?: ThrottleOptions
  readonly silentNodes?: SilentLanes
  /** Whether the process also expands volumes. */
  readonly runsExpansion?: boolean
  /** Other kinds of change. */
  readonly otherChanges?: readonly VolumeChange[]
}

export interface ClaimOptions {
  readonly className?: string
  /** iops and throughput that are requested and in effect. */
  readonly io?: Readonly<Record<string, string>>
  readonly storageClassName?: string
  readonly csi?: object
  readonly nodeAffinity?: object
  readonly annotations?: Readonly<Record<string, string>>
  /** The attributes in the driver. */
  readonly attributes?: Readonly<Record<string, string>>
}

export type ModifyingFixture = Awaited<ReturnType<typeof createModifyingFixture>>

export async function createModifyingFixture(fixtureOptions: ModifyingFixtureOptions = {}) {
  const server = await createServerFixture(fixtureOptions)
  const client = server.client()
  const fake =
    fixtureOptions.fake ??
    createFakeDriver({ clock: server.clock, settings: fakeSettings({ name: DRIVER, ...fixtureOptions.settings }) })
  const driver = createDriverClient(fake)
  const facts = await readDriverFacts(driver)
  const recordedEvents: (EventDetails & { readonly objectName: string })[] = []
  const stops: (() => Promise<void>)[] = []

  function start(options: StartOptions = {}) {
    const injector = createCrashInjector(options.killAt)
    const resizerClient = server.clientOf('resizer')
    const isAtomic = options.isAtomic ?? !server.isStock
    const controllerClient = processClient(resizerClient, injector, isAtomic, options.intercept)
    const caches = createCacheSet({
      client: resizerClient,
      clock: server.clock,
      random: () => 0.5,
      reductions: GUARDED_CACHES,
    })
    const abort = new AbortController()
    setMaxListeners(0, abort.signal) // one listener per running reconcile
    const sharedOptions = { caches, clock: server.clock, random: () => 0.5, log: silentLog, facts }
    const controller = injector.wrapAll(driver.controller, ['controllerModifyVolume', 'controllerExpandVolume'])
    const driverDeps = {
      ...sharedOptions,
      client: controllerClient,
      driver: { ...driver, controller },
      events: {
        record: (_kind: Kind, { metadata }: Readonly<KubeObject>, event: EventDetails) => {
          if (!injector.hasCrashed) recordedEvents.push({ ...event, objectName: metadata.name ?? '' })
        },
      },
      throttle: options.throttle && createChangeThrottle(server.clock, options.throttle),
    }
    const expansion = options.runsExpansion
      ? [createExpanding({ ...driverDeps, options: { checksCapacity: false } })]
      : []
    const change = createModifying({
      ...driverDeps,
      gates: options.gates ?? allGatesOn,
      options: options.options,
      modifyingMetrics: options.metrics,
    })
    const controllers = createVolumeChangeControllers({
      ...sharedOptions,
      silentNodes: options.silentNodes,
      changes: [...(options.otherChanges ?? []), ...expansion, change],
      options: { workers: options.workers },
    })
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
      queueState: (name = 'data') => controllers.queues[0]!.stateOf(changeKey(`default/${name}`, 'modifying')),
      isBusy: () => controllers.queues.some((queue) => queue.stats().depth + queue.stats().running > 0),
      stop,
    }
  }

  const patchClaim = (name: string, body: object, subresource?: 'status') =>
    client.patch(persistentVolumeClaimKind, { namespace: 'default', name }, { type: 'merge', body }, { subresource })

  /** Creates a volume in the driver, its PersistentVolume and a claim bound to it. */
  async function createClaim(name = 'data', options: ClaimOptions = {}): Promise<void> {
    const { className, io = {}, storageClassName = '', csi = {}, nodeAffinity, annotations, attributes = {} } = options
    fake.state.volumes[`vol-${name}`] = {
      id: `vol-${name}`,
      name,
      order: ++fake.state.sequence,
      pool: 'pool',
      copies: 1,
      capacityBytes: 1024 ** 3,
      createRequest: { capabilities: [], parameters: {}, mutableParameters: {}, source: undefined },
      mutableParameters: { ...attributes },
      attachments: {},
      onNodes: {},
    }
    const classFields = className === undefined ? {} : { volumeAttributesClassName: className }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName,
        volumeName: name,
        resources: { requests: { storage: '1Gi', ...io } },
        ...classFields,
      },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name, ...(annotations ? { annotations } : {}) },
      spec: {
        capacity: { storage: '1Gi', ...io },
        accessModes: ['ReadWriteOnce'],
        storageClassName,
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: `vol-${name}`, ...csi },
        ...(nodeAffinity ? { nodeAffinity } : {}),
        ...classFields,
      },
    } as never)
    const volume = await client.get(persistentVolumeKind, { name })
    const currentClassFields = className === undefined ? {} : { currentVolumeAttributesClassName: className }
    await patchClaim(
      name,
      { status: { phase: 'Bound', capacity: volume.spec?.capacity, ...currentClassFields } },
      'status',
    )
  }

  const fixture = {
    server,
    client,
    fake,
    events: recordedEvents,
    eventReasons: () => recordedEvents.map(({ reason }) => reason),
    start,
    createClaim,
    createClass: (name: string, parameters: Record<string, string>, driverName = DRIVER) =>
      client.create(volumeAttributesClassKind, { metadata: { name }, driverName, parameters } as never),
    createPod: (name: string, claimName = 'data') =>
      client.create(podKind, {
        metadata: { namespace: 'default', name },
        spec: {
          volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
          containers: [{ name: 'main', image: 'any' }],
        },
      } as never),
    terminatePod: (name: string) =>
      client.patch(
        podKind,
        { namespace: 'default', name },
        { type: 'merge', body: { status: { phase: 'Succeeded' } } },
        { subresource: 'status' },
      ),
    patchClaim,
    setClass: (className: string | null, name = 'data') =>
      patchClaim(name, { spec: { volumeAttributesClassName: className } }),
    setIo: (io: Readonly<Record<string, string | null>>, name = 'data') =>
      patchClaim(name, { spec: { resources: { requests: io } } }),
    claim: (name = 'data'): Promise<Readonly<PersistentVolumeClaim>> =>
      client.get(persistentVolumeClaimKind, { namespace: 'default', name }),
    volume: (name = 'data'): Promise<Readonly<PersistentVolume>> => client.get(persistentVolumeKind, { name }),
    status: async (name = 'data') => (await fixture.claim(name)).status ?? {},
    /** The attributes in the driver. */
    driverAttributes: (name = 'data') => fake.state.volumes[`vol-${name}`]?.mutableParameters,
    /** Returns the parameters of all ControllerModifyVolume calls so far. */
    modifyCalls: () =>
      fake.record.calls
        .filter(({ method }) => method === 'ControllerModifyVolume')
        .map(({ request }) => (request as { mutableParameters?: Record<string, string> }).mutableParameters ?? {}),
    setRules: (rules: readonly FakeRule[]) =>
      fake.script.setRules(rules.map((rule) => ({ method: 'ControllerModifyVolume', ...rule }))),
    failCalls: (code: Extract<FakeRule['effect'], { do: 'fail' }>['code'], times?: number) =>
      fixture.setRules([{ effect: { do: 'fail', code }, ...(times === undefined ? {} : { times }) }]),
    /** Runs the event loop and advances the clock until the condition holds. */
    async waitUntil(condition: () => unknown, description: string) {
      for (let turn = 0; turn < 20_000; turn++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (turn % 40 === 39) await server.clock.advance(1_000)
      }
      const state = JSON.stringify(
        { recordedEvents, calls: fixture.modifyCalls(), claims: (await client.list(persistentVolumeClaimKind)).items },
        null,
        1,
      )
      throw new Error(`still waiting for: ${description}; ${state}`)
    },
    /** Waits until the class is in effect and no modification is in progress. */
    async waitUntilSettled(className: string | undefined, name = 'data') {
      await fixture.waitUntil(async () => {
        const { currentVolumeAttributesClassName, modifyVolumeStatus, conditions = [] } = await fixture.status(name)
        return currentVolumeAttributesClassName === className && !modifyVolumeStatus && conditions.length === 0
      }, `${name} to have settled on ${className}`)
    },
    /** Runs 150 turns of the event loop, without advancing the clock. */
    async settle() {
      for (let turn = 0; turn < 150; turn++) await new Promise((resolve) => setImmediate(resolve))
    },
    async close() {
      for (const stop of stops.splice(0)) await stop()
      await server.store.close()
    },
  }
  return fixture
}

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** Returns a CSI client that calls the fake in process. */
function createDriverClient(fake: FakeDriver): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('node-1') }
  return serializeCalls(
    createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
      const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
      return create(method.output, (await service[method.localName]!(request, { signal })) as never)
    }),
  )
}
