// Tests controllers and the scheduler on a server on which a kind is disabled (--runtime-config): their other work
// continues, and objects that are not served do not count as deleted.
import { afterEach, describe, expect, it } from 'vitest'
import type { Kind } from '../api/kind.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import { silentLog } from '../base/log.ts'
import { DRIVER, gi, HOST, startSchedulerFixture } from '../scheduler/scheduler.fixture.ts'
import { memoryMedium } from '../store/index.ts'
import { createGarbageController } from './garbage-collection/index.ts'
import { createNamespaceController } from './namespaces/index.ts'

const CLASSES_DISABLED = ['v1', 'v1beta1', 'v1alpha1']
  .map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
  .join(',')
const CAPACITIES_DISABLED = 'storage.k8s.io/v1/csistoragecapacities=false'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const SECRETS = '/api/v1/namespaces/default/secrets'

let cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.reverse()) await cleanUp()
  cleanups = []
})

type ControllerFactory = (options: any) => { run(signal: AbortSignal): Promise<void> }

function start(
  fixture: ServerFixture,
  component: 'garbage' | 'namespaces',
  create: ControllerFactory,
): () => Promise<unknown> {
  const abort = new AbortController()
  const client = fixture.clientOf(component)
  const kinds: readonly Kind[] = ALL_KINDS
  const run = create({ client, kinds, clock: fixture.clock, random: () => 0.5, log: silentLog }).run(abort.signal)
  return async () => {
    abort.abort()
    await run
  }
}

describe('garbage collection with a disabled kind', () => {
  it('SYS-15 deletes an object whose owner does not exist, and one whose owner has the disabled kind only after the owner is deleted', async () => {
    const medium = memoryMedium()
    let fixture = await createServerFixture({ medium })
    const parameters = { iops: '1' }
    const { uid } = (
      await fixture.post(CLASSES, { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters })
    ).json.metadata
    const silver = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttributesClass', name: 'silver', uid }
    await fixture.post(SECRETS, { metadata: { name: 'kept', ownerReferences: [silver] } })
    const missingOwner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u' }
    await fixture.post(SECRETS, { metadata: { name: 'orphan', ownerReferences: [missingOwner] } })
    await fixture.store.close()

    fixture = await createServerFixture({ medium, runtimeConfig: CLASSES_DISABLED })
    const stop = start(fixture, 'garbage', createGarbageController)
    await fixture.waitUntil(
      async () => (await fixture.get(`${SECRETS}/orphan`)).status === 404,
      'the orphan to be deleted',
    )
    await fixture.clock.advance(60_000)
    expect((await fixture.get(`${SECRETS}/kept`)).status).toBe(200)
    await stop()
    await fixture.store.close()

    fixture = await createServerFixture({ medium })
    cleanups.push(() => fixture.store.close(), start(fixture, 'garbage', createGarbageController))
    expect((await fixture.get(`${SECRETS}/kept`)).status).toBe(200)
    await fixture.patch(`${CLASSES}/silver`, { metadata: { finalizers: null } }, 'merge')
    await fixture.delete(`${CLASSES}/silver`)
    await fixture.waitUntil(
      async () => (await fixture.get(`${SECRETS}/kept`)).status === 404,
      'the dependent to be deleted',
    )
  })
})

describe('namespace deletion with a disabled kind', () => {
  it('SYS-15 deletes a namespace that contains an object of another kind', async () => {
    const fixture = await createServerFixture({ runtimeConfig: CAPACITIES_DISABLED })
    cleanups.push(() => fixture.store.close(), start(fixture, 'namespaces', createNamespaceController))
    await fixture.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await fixture.post('/api/v1/namespaces/shop/configmaps', { metadata: { name: 'a' } })
    await fixture.delete('/api/v1/namespaces/shop')
    await fixture.waitUntil(
      async () => (await fixture.get('/api/v1/namespaces/shop')).status === 404,
      'the namespace to be deleted',
    )
  })
})

describe('scheduling with capacity objects disabled', () => {
  it('SYS-15 schedules a pod whose driver publishes its capacity', async () => {
    const fixture = await startSchedulerFixture({ runtimeConfig: CAPACITIES_DISABLED })
    cleanups.push(() => fixture.stop())
    fixture.storage.freeBytes.set('n1', gi(10))
    await fixture.createNode('n1', { labels: { [HOST]: 'n1' } })
    await fixture.createDriver(true)
    await fixture.createClass('pools', { provisioner: DRIVER, volumeBindingMode: 'WaitForFirstConsumer' })
    await fixture.createClaim('data', { size: '1Gi', storageClassName: 'pools' })
    await fixture.createPod('web', { claims: ['data'] })
    await fixture.waitUntil(async () => (await fixture.nodeOf('web')) === 'n1', 'the pod to be scheduled')
  })
})
