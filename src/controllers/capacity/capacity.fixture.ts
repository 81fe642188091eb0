// Fixture of the capacity tests: a capacity producer, a real API server in memory, a fake driver and a manual clock. It
// records writes of capacity objects and counts GetCapacity calls.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { onTestFinished } from 'vitest'
import type { Kind } from '../../api/kind.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { authorizeUnservedKinds } from '../../apiserver/rbac/component-access.fixture.ts'
import { createServerFixture, type ServerFixture, type ServerFixtureOptions } from '../../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createFakeDriver, type FakeDriver, type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, readDriverFacts } from '../../csi/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, type WorkQueue } from '../../runtime/index.ts'
import { createCapacityControllers } from './capacity-controllers.ts'
import { capacityKind } from './items.ts'
import { DRIVER_NAME_LABEL, MANAGED_BY_LABEL } from './managed-by.ts'
import type { CapacityMetrics } from './metrics.ts'
import type { CapacityMode, CapacityOptions } from './options.ts'

export const GI = 1024 ** 3
export const DRIVER = 'fake.stowage.example'
const NAMESPACE = 'kube-system'
export const CAPACITIES = `/apis/storage.k8s.io/v1/namespaces/${NAMESPACE}/csistoragecapacities`
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const CSI_NODES = '/apis/storage.k8s.io/v1/csinodes'

export interface CapacityFixtureOptions {
  readonly server?: ServerFixtureOptions
  readonly pools?: FakeSettings['pools']
  readonly settings?: Partial<FakeSettings>
}

interface ProducerOptions {
  readonly mode?: CapacityMode
  readonly options?: Partial<CapacityOptions>
  readonly metrics?: CapacityMetrics
  readonly log?: Logger
  /** Wraps the client of the producer. */
  readonly wrapClient?: (client: Client) => Client
}

export interface CapacityFixture {
  readonly server: ServerFixture
  readonly fake: FakeDriver
  readonly client: Client
  /** Verbs of the writes of capacity objects (create, patch, delete), in order. */
  readonly writes: string[]
  /** Returns the number of GetCapacity calls so far. */
  countGetCapacityCalls(): number
  start(options?: ProducerOptions): Promise<{ stop(): Promise<void>; readonly queue: WorkQueue }>
  /** Errors of producers that ended without being stopped. */
  readonly failures: unknown[]
  /** Waits until the producer is idle. */
  settle(): Promise<void>
  /** Settles, advances the clock, and settles again. */
  advance(ms: number): Promise<void>
  objects(): Promise<CSIStorageCapacity[]>
  /** Returns one line `class zone capacity` per object, sorted. */
  summary(): Promise<string[]>
  /** Object name, reason and message of each event. */
  readonly events: readonly (readonly (string | undefined)[])[]
  createClass(name: string, parameters?: object, fields?: object): Promise<unknown>
  createNode(name: string, labels: object, keys?: readonly string[]): Promise<unknown>
  removeDriver(node: string): Promise<unknown>
  deleteClass(name: string): Promise<unknown>
  /** Creates a volume in the driver and its PV. Without a zone the PV has no node affinity. */
  createVolume(name: string, bytes: number, zone?: string, className?: string): Promise<unknown>
  deleteVolume(name: string): Promise<unknown>
}

export async function createCapacityFixture(options: CapacityFixtureOptions = {}): Promise<CapacityFixture> {
  const server = await createServerFixture(options.server)
  const { clock } = server
  const pools = options.pools ?? [
    { name: 'a', capacityBytes: 10 * GI, segments: { zone: 'a' } },
    { name: 'b', capacityBytes: 4 * GI, segments: { zone: 'b' } },
  ]
  const fake = createFakeDriver({ clock, settings: fakeSettings({ name: DRIVER, pools, ...options.settings }) })
  const driver = createDriverClient(fake)
  const facts = await readDriverFacts(driver)
  const writes: string[] = []
  const client = recordWrites(server.client(), writes)
  const producerClient = recordWrites(server.clientOf('provisioner'), writes)
  const runningProducers: { queue: WorkQueue; stop(): Promise<void> }[] = []

  const failures: unknown[] = []
  const events: (string | undefined)[][] = []
  const fixture: CapacityFixture = {
    failures,
    events,
    server,
    fake,
    client,
    writes,
    countGetCapacityCalls: () => fake.record.calls.filter(({ method }) => method === 'GetCapacity').length,
    async start(producerOptions: ProducerOptions = {}) {
      const { mode = { is: 'central' }, metrics, log = silentLog } = producerOptions
      const { wrapClient = (wrapped) => wrapped } = producerOptions
      const wrappedClient = authorizeUnservedKinds(wrapClient(producerClient), 'provisioner')
      const sharedOptions = { clock, random: () => 0.5, log, client: wrappedClient }
      const caches = createCacheSet({ ...sharedOptions, reductions: GUARDED_CACHES })
      const controllers = createCapacityControllers({
        ...sharedOptions,
        caches,
        driver,
        facts,
        mode,
        options: { namespace: NAMESPACE, ...producerOptions.options },
        events: {
          record: (_kind, { metadata }, { reason, message }) => void events.push([metadata.name, reason, message]),
        },
        ...(metrics ? { capacityMetrics: metrics } : {}),
      })
      const abort = new AbortController()
      const run = controllers.run(abort.signal).catch((error) => void failures.push(error))
      const producer = {
        queue: controllers.queues[0]!,
        async stop() {
          abort.abort()
          await run
          await caches.stop()
          if (runningProducers.includes(producer)) runningProducers.splice(runningProducers.indexOf(producer), 1)
        },
      }
      runningProducers.push(producer)
      await fixture.settle()
      return producer
    },
    async settle() {
      const isBusy = () => runningProducers.some(({ queue }) => queue.stats().depth + queue.stats().running > 0)
      for (let turn = 0, idleTurns = 0; idleTurns < IDLE_TURNS && turn < TURNS_MAX; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
        idleTurns = isBusy() ? 0 : idleTurns + 1
      }
    },
    async advance(ms) {
      await fixture.settle() // a change that arrived later would start its timer later
      await clock.advance(ms)
      await fixture.settle()
    },
    objects: async () => (await server.get(CAPACITIES)).json.items,
    summary: async () =>
      (await fixture.objects())
        .map(
          ({ storageClassName, nodeTopology, capacity }) =>
            `${storageClassName} ${nodeTopology?.matchLabels?.zone ?? '*'} ${capacity}`,
        )
        .sort(),
    createClass: (name, parameters = {}, fields = {}) =>
      server.post(CLASSES, {
        metadata: { name },
        provisioner: DRIVER,
        parameters,
        volumeBindingMode: 'WaitForFirstConsumer',
        ...fields,
      }),
    async createNode(name, labels, keys = ['zone']) {
      await server.post('/api/v1/nodes', { metadata: { name, labels } })
      const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: keys }]
      return server.post(CSI_NODES, { metadata: { name }, spec: { drivers } })
    },
    removeDriver: (node) => server.patch(`${CSI_NODES}/${node}`, { spec: { drivers: [] } }, 'merge'),
    deleteClass: (name) => server.delete(`${CLASSES}/${name}`),
    async createVolume(name, bytes, zone, className = 'fast') {
      const requisite = zone ? [{ segments: { zone } }] : []
      const { volume } = await driver.controller.createVolume({
        name,
        capacityRange: { requiredBytes: BigInt(bytes) },
        volumeCapabilities: [MOUNT_CAPABILITY],
        ...(zone ? { accessibilityRequirements: { requisite, preferred: requisite } } : {}),
      })
      const terms = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }]
      return server.post('/api/v1/persistentvolumes', {
        metadata: { name },
        spec: {
          capacity: { storage: String(bytes) },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: className,
          csi: { driver: DRIVER, volumeHandle: volume!.volumeId },
          ...(zone ? { nodeAffinity: { required: { nodeSelectorTerms: terms } } } : {}),
        },
      })
    },
    async deleteVolume(name) {
      const { json } = await server.get(`/api/v1/persistentvolumes/${name}`)
      await driver.controller.deleteVolume({ volumeId: json.spec.csi.volumeHandle })
      await server.patch(`/api/v1/persistentvolumes/${name}`, { metadata: { finalizers: null } }, 'merge')
      return server.delete(`/api/v1/persistentvolumes/${name}`)
    },
  }
  onTestFinished(async () => {
    for (const producer of [...runningProducers]) await producer.stop()
    await server.store.close()
  })
  return fixture
}

const IDLE_TURNS = 30
const TURNS_MAX = 10_000
const MOUNT_CAPABILITY = {
  accessType: { case: 'mount' as const, value: {} },
  accessMode: { mode: 1 },
}

/** Returns a capacity object with the producer's labels, as another writer would create it. */
export const aCapacity = (name: string, className: string, zone: string, fields: object = {}, managedBy?: string) => ({
  metadata: {
    name,
    namespace: NAMESPACE,
    labels: { [DRIVER_NAME_LABEL]: DRIVER, [MANAGED_BY_LABEL]: managedBy ?? 'external-provisioner' },
  },
  storageClassName: className,
  nodeTopology: { matchLabels: { zone } },
  capacity: '1',
  ...fields,
})

/** Returns a CSI client of the fake. Its node service is that of the first node. */
function createDriverClient(fake: FakeDriver): CsiDriver {
  const node = fake.node(fake.settings.nodes[0]!.id)
  const services = { Identity: fake.identity, Controller: fake.controller, Node: node } as unknown as Record<
    string,
    Record<string, (request: Message, call: { signal: AbortSignal }) => Promise<object>>
  >
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const reply = await services[method.parent.name]![method.localName]!(request, { signal })
    return create(method.output, reply as never)
  })
}

function recordWrites(client: Client, writes: string[]): Client {
  const record = (verb: string, kind: Kind) => {
    if (kind === capacityKind) writes.push(verb)
  }
  return {
    ...client,
    create: (kind, ...args) => {
      record('create', kind)
      return client.create(kind, ...args)
    },
    patch: (kind, ...args) => {
      record('patch', kind)
      return client.patch(kind, ...args)
    },
    delete: (kind, ...args) => {
      record('delete', kind)
      return client.delete(kind, ...args)
    },
  }
}
