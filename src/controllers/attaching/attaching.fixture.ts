// Fixture of the attach-detach tests: an API server, a fake CSI driver, simulated node agents, and controller processes
// that can be stopped or killed. `violations` collects violated invariants.
import { setMaxListeners } from 'node:events'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createFakeDriver, type FakeDriver, type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'
import { VolumeCapability_AccessMode_Mode as AccessMode } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, createCsiDriver, readDriverFacts } from '../../csi/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type EventDetails } from '../../runtime/index.ts'
import { queueMetrics } from '../../runtime/queue-metrics.fixture.ts'
import { attachedVolumeNameOf, attacherFinalizerOf, attachmentNameOf } from '../../volumes/attachment-names.ts'
import { createCrashInjector, type ProcessOptions, processClient } from '../provisioning/provisioning.fixture.ts'
import { type AttacherOptions, createAttacher, createAttachingControllers } from './index.ts'
import type { AttachingMetrics } from './metrics.ts'

export const DRIVER = 'disks.example.com'
export const FINALIZER = attacherFinalizerOf(DRIVER)
const NODES = ['left', 'right'] as const

export const attachmentNameOn = (nodeName: string, handle = 'vol-data') =>
  attachmentNameOf({ driver: DRIVER, handle, nodeName })
export const attachedName = (handle = 'vol-data') => attachedVolumeNameOf({ driver: DRIVER, handle })

export interface StartOptions extends Pick<ProcessOptions, 'isAtomic' | 'killAt' | 'intercept'> {
  /** The component to run. By default both run in one process. */
  readonly component?: 'controllers' | 'attacher'
  readonly attacher?: AttacherOptions
  readonly forceDetachAfterMs?: number
  readonly metrics?: AttachingMetrics
  /** Called with a key at the start and the end of each of its reconciles. */
  readonly onQueueChange?: (key: string) => void
  /** Called before every watch event of an attachment, which is delivered after the returned promise resolves. */
  readonly beforeEvent?: () => Promise<void>
}

export interface VolumeOptions {
  readonly accessModes?: readonly string[]
  readonly csi?: object
  readonly spec?: object
}

export type AttachingFixture = Awaited<ReturnType<typeof createAttachingFixture>>

export async function createAttachingFixture(settings: Partial<FakeSettings> = {}) {
  const server: ServerFixture = await createServerFixture()
  const client = server.client()
  const nodes = NODES.map((id) => ({ id: `id-${id}` }))
  const fake = createFakeDriver({ clock: server.clock, settings: fakeSettings({ name: DRIVER, nodes, ...settings }) })
  const violations: string[] = []
  const recordedEvents: (EventDetails & { readonly objectName: string })[] = []
  const driver = checkedDriver(fake, violations)
  const facts = await readDriverFacts(driver)
  const mounts = new Map<string, Set<string>>(NODES.map((name) => [name, new Set<string>()]))
  const stops: (() => Promise<void>)[] = []

  for (const name of NODES) await client.create(nodeKind, { metadata: { name } } as Node)
  for (const name of NODES) await setReady(name, 'True')
  for (const name of NODES) {
    const drivers = [{ name: DRIVER, nodeID: `id-${name}`, topologyKeys: [] }]
    await client.create(csiNodeKind, { metadata: { name }, spec: { drivers } } as never)
  }

  function setReady(name: string, status: string) {
    return patchStatus(nodeKind, name, { conditions: [{ type: 'Ready', status }] }, 'strategic')
  }

  function patchStatus(kind: Kind, name: string, status: object, type: 'merge' | 'strategic' = 'merge') {
    const ref = kind.namespaced ? { namespace: 'default', name } : { name }
    return client.patch(kind, ref, { type, body: { status } }, { subresource: 'status' })
  }

  async function start(options: StartOptions = {}) {
    const injector = createCrashInjector(options.killAt)
    const isAtomic = options.isAtomic ?? !server.isStock
    const clientOf = (component: 'attaching' | 'attacher') =>
      processClient(server.clientOf(component), injector, isAtomic, options.intercept)
    const cachesOf = (component: 'attaching' | 'attacher') => {
      const cacheClient = server.clientOf(component)
      const watchingClient = options.beforeEvent ? delayWatch(cacheClient, options.beforeEvent) : cacheClient
      return createCacheSet({
        client: watchingClient,
        clock: server.clock,
        random: () => 0.5,
        reductions: component === 'attacher' ? GUARDED_CACHES : undefined,
      })
    }
    const caches = { attaching: cachesOf('attaching'), attacher: cachesOf('attacher') }
    const stopCaches = () => Promise.all([caches.attaching.stop(), caches.attacher.stop()])
    const abort = new AbortController()
    setMaxListeners(0, abort.signal) // one listener per running reconcile
    const sharedOptions = { clock: server.clock, random: () => 0.5, log: silentLog }
    const events = {
      record: (_kind: Kind, { metadata }: Readonly<KubeObject>, event: EventDetails) => {
        if (!injector.hasCrashed) recordedEvents.push({ ...event, objectName: metadata.name ?? '' })
      },
    }
    const components = [
      ...(options.component === 'attacher'
        ? []
        : [
            createAttachingControllers({
              ...sharedOptions,
              client: clientOf('attaching'),
              caches: caches.attaching,
              events,
              options: { forceDetachAfterMs: options.forceDetachAfterMs },
              attachingMetrics: options.metrics,
              metrics: options.onQueueChange && queueMetrics(options.onQueueChange),
            }),
          ]),
      ...(options.component === 'controllers'
        ? []
        : [
            createAttacher({
              ...sharedOptions,
              client: clientOf('attacher'),
              caches: caches.attacher,
              driver: crashableDriver(driver, injector),
              facts,
              options: options.attacher ?? {},
            }),
          ]),
    ]
    const runs = Promise.all(components.map((component) => component.run(abort.signal)))
    injector.onCrash(() => void stopCaches())
    const stop = async () => {
      abort.abort()
      if (!injector.hasCrashed) await runs
      await stopCaches()
    }
    stops.push(stop)
    return {
      calls: injector.calls,
      get hasCrashed() {
        return injector.hasCrashed
      },
      queueState: (key: string) =>
        components.flatMap(({ queues }) => queues.map((queue) => queue.stateOf(key))).find(Boolean),
      stop,
    }
  }

  /** Creates a volume in the driver, its PersistentVolume and a claim bound to it. */
  async function createVolume(
    name = 'data',
    { accessModes = ['ReadWriteOnce'], csi = {}, spec = {} }: VolumeOptions = {},
  ) {
    const handle = `vol-${name}`
    fake.state.volumes[handle] = {
      id: handle,
      name,
      order: ++fake.state.sequence,
      pool: 'pool',
      copies: 1,
      capacityBytes: 1024 ** 3,
      createRequest: { capabilities: [], parameters: {}, mutableParameters: {}, source: undefined },
      mutableParameters: {},
      attachments: {},
      onNodes: {},
    }
    const claim = await client.create(persistentVolumeClaimKind, {
      metadata: { namespace: 'default', name },
      spec: { accessModes, storageClassName: '', volumeName: name, resources: { requests: { storage: '1Gi' } } },
    } as never)
    await client.create(persistentVolumeKind, {
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes,
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: handle, ...csi },
        ...spec,
      },
    } as never)
    await patchStatus(persistentVolumeKind, name, { phase: 'Bound' })
    await patchStatus(persistentVolumeClaimKind, name, { phase: 'Bound' })
  }

  function createPod(name: string, nodeName: string, claimNames: readonly string[] = ['data']) {
    const volumes = claimNames.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }))
    const spec = { nodeName, volumes, containers: [{ name: 'main', image: 'any' }], terminationGracePeriodSeconds: 0 }
    return client.create(podKind, { metadata: { namespace: 'default', name }, spec } as unknown as Pod)
  }

  const deletePod = (name: string) =>
    client.delete(podKind, { namespace: 'default', name }, { gracePeriodSeconds: 0 }).catch(() => undefined)

  const getOrUndefined = async <T>(read: Promise<T>): Promise<T | undefined> => read.catch(() => undefined)

  /** One pass of the node agents: unmount, report volumesInUse, mount attached volumes. */
  async function runAgents(stoppedNodes: readonly string[] = []): Promise<void> {
    for (const nodeName of NODES) if (!stoppedNodes.includes(nodeName)) await runAgent(nodeName)
  }

  async function runAgent(nodeName: string): Promise<void> {
    const node = await getOrUndefined(client.get(nodeKind, { name: nodeName }))
    if (!node) return
    const mountedVolumes = mounts.get(nodeName)!
    const desiredVolumes = await desiredVolumesOn(nodeName)
    for (const name of [...mountedVolumes]) if (!desiredVolumes.has(name)) mountedVolumes.delete(name)
    const attachedVolumes = new Set(node.status?.volumesAttached?.map(({ name }) => name))
    const volumesToMount = [...desiredVolumes].filter((name) => attachedVolumes.has(name))
    const volumesInUse = [...new Set([...mountedVolumes, ...volumesToMount])].sort()
    if (volumesInUse.join() !== (node.status?.volumesInUse ?? []).join()) {
      const updatedNode: Readonly<Node> = await patchStatus(nodeKind, nodeName, {
        volumesInUse: volumesInUse.length > 0 ? volumesInUse : null,
      })
      // A volume may have been detached before volumesInUse was written.
      const stillAttached = new Set(updatedNode.status?.volumesAttached?.map(({ name }) => name))
      for (const name of volumesToMount) if (stillAttached.has(name)) mount(nodeName, name)
    } else for (const name of volumesToMount) mount(nodeName, name)
  }

  function mount(nodeName: string, name: string): void {
    mounts.get(nodeName)!.add(name)
    const handle = name.slice(name.indexOf('^') + 1)
    if (!fake.state.volumes[handle]?.attachments[`id-${nodeName}`]) {
      violations.push(`${handle} was mounted on ${nodeName}, where it is not published`)
    }
  }

  async function desiredVolumesOn(nodeName: string): Promise<Set<string>> {
    const pods = (await client.list(podKind)).items.filter(({ spec }) => spec?.nodeName === nodeName)
    const names = pods
      .flatMap(({ spec }) => spec?.volumes ?? [])
      .map((volume) => volume.persistentVolumeClaim?.claimName)
    return new Set(names.map((name) => attachedName(`vol-${name}`)))
  }

  /** Returns the IDs of the nodes on which the driver has published a volume. */
  const publishedNodeIds = (handle = 'vol-data'): string[] => Object.keys(fake.state.volumes[handle]?.attachments ?? {})

  /** Checks that every published volume has an attachment with the attacher's finalizer. */
  async function checkFinalizers(): Promise<void> {
    const attachments = await fixture.attachments()
    for (const volume of Object.values(fake.state.volumes)) {
      for (const nodeId of Object.keys(volume.attachments)) {
        const name = attachmentNameOn(nodeId.slice('id-'.length), volume.id)
        const finalizers = attachments.find(({ metadata }) => metadata.name === name)?.metadata.finalizers
        if (!finalizers?.includes(FINALIZER))
          violations.push(`${volume.id} is published on ${nodeId} without an attachment that has the finalizer`)
      }
    }
  }

  const fixture = {
    server,
    client,
    fake,
    violations,
    events: recordedEvents,
    eventReasons: () => recordedEvents.map(({ reason }) => reason),
    mounts,
    start,
    createVolume,
    createPod,
    deletePod,
    setReady,
    patchStatus,
    runAgents,
    publishedNodeIds,
    checkFinalizers,
    createCSIDriver: (attachRequired: boolean) =>
      client.create(csiDriverKind, { metadata: { name: DRIVER }, spec: { attachRequired } } as never),
    attachments: async (): Promise<readonly Readonly<VolumeAttachment>[]> =>
      (await client.list(volumeAttachmentKind)).items,
    attachment: (nodeName: string, handle?: string): Promise<Readonly<VolumeAttachment> | undefined> =>
      getOrUndefined(client.get(volumeAttachmentKind, { name: attachmentNameOn(nodeName, handle) })),
    node: (name: string): Promise<Readonly<Node> | undefined> => getOrUndefined(client.get(nodeKind, { name })),
    volume: (name = 'data'): Promise<Readonly<PersistentVolume> | undefined> =>
      getOrUndefined(client.get(persistentVolumeKind, { name })),
    /** Runs the event loop and advances the clock until the condition holds. */
    async waitUntil(condition: () => unknown, description: string, runActors?: () => Promise<void>) {
      for (let turn = 0; turn < 20_000; turn++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (turn % 10 === 9) await runActors?.()
        if (turn % 40 === 39) await server.clock.advance(1_000)
      }
      const state = JSON.stringify(
        { recordedEvents, violations, published: publishedNodeIds(), all: await fixture.attachments() },
        null,
        1,
      )
      throw new Error(`still waiting for: ${description}; ${state}`)
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

function delayWatch(client: Client, beforeEvent: () => Promise<void>): Client {
  async function* delayEvents<T>(events: AsyncIterable<T>) {
    for await (const event of events) {
      await beforeEvent()
      yield event
    }
  }
  return {
    ...client,
    watch: (kind, request) =>
      kind === (volumeAttachmentKind as Kind) ? delayEvents(client.watch(kind, request)) : client.watch(kind, request),
  }
}

const MULTI_NODE_MODES: readonly number[] = [
  AccessMode.MULTI_NODE_READER_ONLY,
  AccessMode.MULTI_NODE_SINGLE_WRITER,
  AccessMode.MULTI_NODE_MULTI_WRITER,
]

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** Returns a CSI client of the fake that records a violation when a single-node volume is published on a second node. */
function checkedDriver(fake: FakeDriver, violations: string[]): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('id-left') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    if (method.name === 'ControllerPublishVolume') checkPublish(request as never)
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    return create(method.output, (await service[method.localName]!(request, { signal })) as never)
  })

  function checkPublish(request: {
    volumeId: string
    nodeId: string
    volumeCapability: { accessMode: { mode: number } }
  }) {
    const publishedNodeIds = Object.keys(fake.state.volumes[request.volumeId]?.attachments ?? {})
    const isPublishedOnOtherNode = publishedNodeIds.some((nodeId) => nodeId !== request.nodeId)
    const isMultiNode = MULTI_NODE_MODES.includes(request.volumeCapability.accessMode.mode)
    if (!isPublishedOnOtherNode || isMultiNode) return
    violations.push(`${request.volumeId} is published on ${request.nodeId} and on ${publishedNodeIds}`)
  }
}

function crashableDriver(driver: CsiDriver, injector: ReturnType<typeof createCrashInjector>): CsiDriver {
  const methods = ['controllerPublishVolume', 'controllerUnpublishVolume'] as const
  return { ...driver, controller: injector.wrapAll(driver.controller, methods) }
}
