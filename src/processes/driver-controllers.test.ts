import { setMaxListeners } from 'node:events'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { allGatesOn } from '../api/feature-gates.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { silentLog } from '../base/log.ts'
import { createFakeDriver, type FakeDriver, fakeSettings } from '../csi/fake/index.ts'
import { type CsiDriver, createCsiDriver, readDriverFacts } from '../csi/index.ts'
import { createCacheSet } from '../runtime/index.ts'
import { SILENT_LANE_FAILURES } from '../runtime/work-queue.ts'
import { attacherFinalizerOf, NODE_ID_ANNOTATION } from '../volumes/attachment-names.ts'
import { PROVISIONED_BY } from '../volumes/names.ts'
import { createDriverControllers } from './driver-controllers.ts'

const DRIVER = 'disks.example.com'
const WORKERS = 10
const VOLUMES = 40
const FAILING_METHODS = ['DeleteVolume', 'ControllerUnpublishVolume']

const releasedVolume = (name: string, policy: string) => ({
  metadata: { name, annotations: { [PROVISIONED_BY]: DRIVER } },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: policy,
    claimRef: { namespace: 'default', name, uid: name },
    csi: { driver: DRIVER, volumeHandle: name },
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'node', operator: 'In', values: ['lost'] }] }] },
    },
  },
})

const attachmentOf = (volume: string) => ({
  metadata: {
    name: `of-${volume}`,
    finalizers: [attacherFinalizerOf(DRIVER)],
    annotations: { [NODE_ID_ANNOTATION]: 'lost' },
  },
  spec: { attacher: DRIVER, nodeName: 'lost', source: { persistentVolumeName: volume } },
})

type AnyCall = (request: Message, call: { signal: AbortSignal }) => Promise<object>

/** Returns a CSI client that calls the fake in process. */
function createDriverClient(fake: FakeDriver): CsiDriver {
  const services = { Identity: fake.identity, Controller: fake.controller, Node: fake.node('lost') }
  return createCsiDriver(async (method: DescMethod, request, { signal = new AbortController().signal }) => {
    const service = services[method.parent.name as keyof typeof services] as unknown as Record<string, AnyCall>
    return create(method.output, (await service[method.localName]!(request, { signal })) as never)
  })
}

const settle = async () => {
  for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('PLUS-11 the controllers of a driver delete and detach one volume of a silent node per second, and all when the node returns', async () => {
  const server = await createServerFixture()
  const { clock } = server
  const client = server.client()
  const patchStatus = (kind: typeof nodeKind | typeof persistentVolumeKind, name: string, status: object) =>
    client.patch(kind as typeof nodeKind, { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
  const setReady = (status: string) => patchStatus(nodeKind, 'lost', { conditions: [{ type: 'Ready', status }] })
  await client.create(nodeKind, { metadata: { name: 'lost' } })
  await setReady('Unknown')
  for (let index = 0; index < VOLUMES; index++) {
    for (const [name, policy] of [
      [`released-${index}`, 'Delete'],
      [`attached-${index}`, 'Retain'],
    ] as const) {
      await client.create(persistentVolumeKind, releasedVolume(name, policy) as never)
      await patchStatus(persistentVolumeKind, name, { phase: 'Released' })
    }
    await client.create(volumeAttachmentKind, attachmentOf(`attached-${index}`) as never)
    await client.delete(volumeAttachmentKind, { name: `of-attached-${index}` })
  }
  const fake = createFakeDriver({ clock, settings: fakeSettings({ name: DRIVER, nodes: [{ id: 'lost' }] }) })
  const driver = createDriverClient(fake)
  const facts = await readDriverFacts(driver)
  fake.script.setRules([{ effect: { do: 'fail', code: 'UNAVAILABLE', message: 'the node does not answer' } }])
  const countCalls = (method: string) => fake.record.calls.filter((call) => call.method === method).length

  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  const abort = new AbortController()
  setMaxListeners(0, abort.signal) // one listener per running reconcile
  const controllers = createDriverControllers(
    {
      ...{ client, caches, clock, random: () => 0.5, log: silentLog, gates: allGatesOn, driverMetrics: {} },
      ...{ driver, facts, node: undefined, mayListNodes: true },
    },
    { provisioning: { workers: WORKERS }, attaching: { workers: WORKERS } },
  )
  const run = controllers.run(abort.signal)
  await settle()
  const callCounts = FAILING_METHODS.map(countCalls)
  for (const callCount of callCounts) {
    expect(callCount).toBeGreaterThanOrEqual(SILENT_LANE_FAILURES)
    expect(callCount).toBeLessThan(SILENT_LANE_FAILURES + WORKERS / 2)
  }
  for (let seconds = 1; seconds <= 5; seconds++) {
    await clock.advance(1_000)
    await settle()
    expect(FAILING_METHODS.map(countCalls)).toEqual(callCounts.map((callCount) => callCount + seconds))
  }

  fake.script.setRules([])
  await setReady('True')
  await settle()
  expect((await client.list(volumeAttachmentKind)).items).toEqual([])
  // The controller `protection` would remove the last finalizer of the deleted volumes.
  const remainingVolumes = (await client.list(persistentVolumeKind)).items.filter(
    ({ metadata }) => !metadata.deletionTimestamp,
  )
  expect(remainingVolumes.filter(({ metadata }) => metadata.name.startsWith('released'))).toEqual([])
  abort.abort()
  await run
  await caches.stop()
  await server.store.close()
})
