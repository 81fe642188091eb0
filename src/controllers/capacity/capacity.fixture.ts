// A capacity producer with a real API server in memory, a fake driver and a manual clock. Records writes of capacity objects
// and counts GetCapacity calls.
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { onTestFinished } from 'vitest'
import type { Kind } from '../../api/kind.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture, type ServerFixtureOptions } from '../../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createFakeDriver, type FakeDriver, type FakeSettings, fakeSettings } from '../../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, driverFacts } from '../../csi/index.ts'
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

export interface ProducerOptions {
  readonly mode?: CapacityMode
  readonly options?: Partial<CapacityOptions>
  readonly metrics?: CapacityMetrics
  readonly log?: Logger
  /** Wraps the client. */
  readonly around?: (client: Client) => Client
}

export interface CapacityFixture {
  readonly server: ServerFixture
  readonly fake: FakeDriver
  readonly client: Client
  /** create, patch and delete of capacity objects, in order. */
  readonly writes: string[]
  /** GetCapacity calls so far. */
  getCapacityCalls(): number
  start(options?: ProducerOptions): Promise<{ stop(): Promise<void>; readonly queue: WorkQueue }>
  /** The error of a producer that ended without being stopped. */
  readonly failures: unknown[]
  /** Waits until the producer is idle. */
  settle(): Promise<void>
  /** Advances the clock, then settles. */
  pass(ms: number): Promise<void>
  objects(): Promise<CSIStorageCapacity[]>
  /** `class zone capacity`, sorted. */
  summary(): Promise<string[]>
  aClass(name: string, parameters?: object, more?: object): Promise<unknown>
  aNode(name: string, labels: object, keys?: readonly string[]): Promise<unknown>
  dropDriver(node: string): Promise<unknown>
  deleteClass(name: string): Promise<unknown>
  /** Creates a volume in the driver and its PV; without zone, without affinity. */
  aVolume(name: string, bytes: number, zone?: string, className?: string): Promise<unknown>
  removeVolume(name: string): Promise<unknown>
}

export async function createCapacityFixture(given: CapacityFixtureOptions = {}): Promise<CapacityFixture> {
  const server = await createServerFixture(given.server)
  const { clock } = server
  const pools = given.pools ?? [
    { name: 'a', capacityBytes: 10 * GI, segments: { zone: 'a' } },
    { name: 'b', capacityBytes: 4 * GI, segments: { zone: 'b' } },
  ]
  const fake = createFakeDriver({ clock, settings: fakeSettings({ name: DRIVER, pools, ...given.settings }) })
  const driver = driverTo(fake)
  const facts = await driverFacts(driver)
  const writes: string[] = []
  const client = countingWrites(inProcessClient(server.server.objects, SYSTEM_USER), writes)
  const running: { queue: WorkQueue; stop(): Promise<void> }[] = []

  const failures: unknown[] = []
  const fixture: CapacityFixture = {
    failures,
    server,
    fake,
    client,
    writes,
    getCapacityCalls: () => fake.record.calls.filter(({ method }) => method === 'GetCapacity').length,
    async start(given: ProducerOptions = {}) {
      const { mode = { is: 'central' }, options, metrics, log = silentLog } = given
      const seen = given.around?.(client) ?? client
      const common = { clock, random: () => 0.5, log, client: seen }
      const caches = createCacheSet(common)
      const controllers = createCapacityControllers({
        ...common,
        caches,
        driver,
        facts,
        mode,
        options: { namespace: NAMESPACE, ...options },
        ...(metrics ? { capacityMetrics: metrics } : {}),
      })
      const abort = new AbortController()
      const over = controllers.run(abort.signal).catch((error) => void failures.push(error))
      const one = {
        queue: controllers.queues[0]!,
        async stop() {
          abort.abort()
          await over
          await caches.stop()
          if (running.includes(one)) running.splice(running.indexOf(one), 1)
        },
      }
      running.push(one)
      await fixture.settle()
      return one
    },
    async settle() {
      const isBusy = () => running.some(({ queue }) => queue.stats().depth + queue.stats().running > 0)
      for (let turn = 0, still = 0; still < QUIET_TURNS && turn < TURNS_MAX; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
        still = isBusy() ? 0 : still + 1
      }
    },
    async pass(ms) {
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
    aClass: (name, parameters = {}, more = {}) =>
      server.post(CLASSES, {
        metadata: { name },
        provisioner: DRIVER,
        parameters,
        volumeBindingMode: 'WaitForFirstConsumer',
        ...more,
      }),
    async aNode(name, labels, keys = ['zone']) {
      await server.post('/api/v1/nodes', { metadata: { name, labels } })
      const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: keys }]
      return server.post(CSI_NODES, { metadata: { name }, spec: { drivers } })
    },
    dropDriver: (node) => server.patch(`${CSI_NODES}/${node}`, { spec: { drivers: [] } }, 'merge'),
    deleteClass: (name) => server.delete(`${CLASSES}/${name}`),
    async aVolume(name, bytes, zone, className = 'fast') {
      const requisite = zone ? [{ segments: { zone } }] : []
      const { volume } = await driver.controller.createVolume({
        name,
        capacityRange: { requiredBytes: BigInt(bytes) },
        volumeCapabilities: [MOUNTED],
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
    async removeVolume(name) {
      const { json } = await server.get(`/api/v1/persistentvolumes/${name}`)
      await driver.controller.deleteVolume({ volumeId: json.spec.csi.volumeHandle })
      await server.patch(`/api/v1/persistentvolumes/${name}`, { metadata: { finalizers: null } }, 'merge')
      return server.delete(`/api/v1/persistentvolumes/${name}`)
    },
  }
  onTestFinished(async () => {
    for (const one of [...running]) await one.stop()
    await server.store.close()
  })
  return fixture
}

const QUIET_TURNS = 30
const TURNS_MAX = 10_000
const MOUNTED = {
  accessType: { case: 'mount' as const, value: {} },
  accessMode: { mode: 1 },
}

/** A capacity object with our labels, created by another writer. */
export const aCapacity = (name: string, className: string, zone: string, more: object = {}, managedBy?: string) => ({
  metadata: {
    name,
    namespace: NAMESPACE,
    labels: { [DRIVER_NAME_LABEL]: DRIVER, [MANAGED_BY_LABEL]: managedBy ?? 'external-provisioner' },
  },
  storageClassName: className,
  nodeTopology: { matchLabels: { zone } },
  capacity: '1',
  ...more,
})

/** The fake as its callers see it; the node part is that of its first node. */
function driverTo(fake: FakeDriver): CsiDriver {
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

function countingWrites(client: Client, writes: string[]): Client {
  const count = (what: string, kind: Kind) => {
    if (kind === capacityKind) writes.push(what)
  }
  return {
    ...client,
    create: (kind, ...rest) => {
      count('create', kind)
      return client.create(kind, ...rest)
    },
    patch: (kind, ...rest) => {
      count('patch', kind)
      return client.patch(kind, ...rest)
    },
    delete: (kind, ...rest) => {
      count('delete', kind)
      return client.delete(kind, ...rest)
    },
  }
}
