import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createNamespaceController } from './namespace-controller.ts'

const SHOP = '/api/v1/namespaces/shop'

let server: ServerFixture
let stop: () => Promise<void>

function startController(): () => Promise<void> {
  const abort = new AbortController()
  const client = inProcessClient(server.server.objects, SYSTEM_USER)
  const { clock } = server
  const controller = createNamespaceController({ client, kinds: ALL_KINDS, clock, random: () => 0.5, log: silentLog })
  const running = controller.run(abort.signal)
  return () => {
    abort.abort()
    return running
  }
}

beforeEach(async () => {
  server = await createServerFixture()
  stop = startController()
  await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

/** Waits until the namespace satisfies the predicate and returns it. A deleted namespace is undefined. */
async function waitUntil(predicate: (namespace: any) => boolean): Promise<any> {
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const { status, json } = await server.get(SHOP)
    const namespace = status === 404 ? undefined : json
    if (predicate(namespace)) return namespace
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the namespace is still ${(await server.get(SHOP)).text}`)
}
const isDeleted = (namespace: any) => namespace === undefined
const contentRemaining = (namespace: any) =>
  namespace?.status.conditions?.find(({ type }: any) => type === 'NamespaceContentRemaining')

describe('createNamespaceController', () => {
  it('SYS-4 removes an empty namespace immediately', async () => {
    const { json } = await server.delete(SHOP)
    expect(json).toMatchObject({
      metadata: { deletionTimestamp: expect.any(String) },
      status: { phase: 'Terminating' },
    })
    await waitUntil(isDeleted)
  })

  it('SYS-4 deletes all objects of every kind in a deleted namespace, and no others', async () => {
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })
    await server.post(`${SHOP}/secrets`, { metadata: { name: 'a' } })
    await server.post('/apis/coordination.k8s.io/v1/namespaces/shop/leases', { metadata: { name: 'a' }, spec: {} })
    await server.post('/apis/storage.k8s.io/v1/namespaces/shop/csistoragecapacities', {
      metadata: { name: 'a' },
      storageClassName: 'c',
    })
    await server.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } })
    await server.delete(SHOP)
    await waitUntil(isDeleted)
    for (const url of [`${SHOP}/configmaps`, `${SHOP}/secrets`, '/apis/coordination.k8s.io/v1/leases']) {
      expect((await server.get(url)).json.items).toEqual([])
    }
    expect((await server.get('/api/v1/namespaces/default/configmaps/a')).status).toBe(200)
  })

  it('SYS-4 waits for finalizers of objects and reports them', async () => {
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'held', finalizers: ['example.com/hold'] } })
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'free' } })
    await server.delete(SHOP)
    const terminating = await waitUntil(contentRemaining)
    expect(terminating.status.phase).toBe('Terminating')
    expect(contentRemaining(terminating)).toMatchObject({
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: '1 object(s) left: configmaps/held (waits for example.com/hold)',
    })
    expect((await server.get(`${SHOP}/configmaps/held`)).json.metadata.deletionTimestamp).toBeTruthy()
    expect((await server.get(`${SHOP}/configmaps/free`)).status).toBe(404)
    await server.patch(`${SHOP}/configmaps/held`, { metadata: { finalizers: null } }, 'merge')
    await waitUntil(isDeleted)
  })

  it('SYS-4 resumes the deletion of a namespace after a restart', async () => {
    await stop()
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })
    await server.delete(SHOP)
    expect((await server.get(SHOP)).json.status.phase).toBe('Terminating')
    stop = startController()
    await waitUntil(isDeleted)
  })

  it('allows a deleted namespace to be recreated with the same name', async () => {
    await server.delete(SHOP)
    await waitUntil(isDeleted)
    expect((await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })).status).toBe(201)
    expect((await server.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })).status).toBe(201)
  })
})
