import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { ApiError } from '../../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createNamespaceController } from './namespace-controller.ts'

const SHOP = '/api/v1/namespaces/shop'

let server: ServerFixture
let stop: () => Promise<void>

function startController(wrapClient = (client: Client): Client => client): () => Promise<void> {
  const abort = new AbortController()
  const client = wrapClient(server.clientOf('namespaces'))
  const { clock } = server
  const controller = createNamespaceController({ client, kinds: ALL_KINDS, clock, random: () => 0.5, log: silentLog })
  const run = controller.run(abort.signal)
  return () => {
    abort.abort()
    return run
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
async function waitUntil(predicate: (namespace: any) => unknown, url = SHOP): Promise<any> {
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const { status, json } = await server.get(url)
    const namespace = status === 404 ? undefined : json
    if (predicate(namespace)) return namespace
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the namespace is still ${(await server.get(url)).text}`)
}
const isDeleted = (namespace: any) => namespace === undefined
const contentConditionOf = (namespace: any) =>
  namespace?.status.conditions?.find(({ type }: any) => type === 'NamespaceContentRemaining')

const conditionsOf = (namespace: any): Record<string, string> =>
  Object.fromEntries(
    (namespace?.status.conditions ?? []).map(({ type, status, reason, message }: any) => [
      type,
      `${status} ${reason}: ${message}`,
    ]),
  )

describe('createNamespaceController', () => {
  it('SYS-4 removes an empty namespace immediately', async () => {
    const { json } = await server.delete(SHOP)
    expect(json).toMatchObject({
      metadata: { deletionTimestamp: expect.any(String) },
      status: { phase: 'Terminating' },
    })
    await waitUntil(isDeleted)
  })

  it('SYS-4 deletes the objects of several kinds in a deleted namespace, and none in another namespace', async () => {
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
    const namespace = await waitUntil(contentConditionOf)
    expect(namespace.status.phase).toBe('Terminating')
    expect(contentConditionOf(namespace)).toMatchObject({
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: 'Some resources are remaining: configmaps. has 1 resource instances (configmaps/held)',
    })
    expect(conditionsOf(namespace)).toEqual({
      NamespaceDeletionDiscoveryFailure: 'False ResourcesDiscovered: All resources successfully discovered',
      NamespaceDeletionGroupVersionParsingFailure:
        'False ParsedGroupVersions: All legacy kube types successfully parsed',
      NamespaceDeletionContentFailure:
        'False ContentDeleted: All content successfully deleted, may be waiting on finalization',
      NamespaceContentRemaining:
        'True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances (configmaps/held)',
      NamespaceFinalizersRemaining:
        'True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
    })
    expect((await server.get(`${SHOP}/configmaps/held`)).json.metadata.deletionTimestamp).toBeTruthy()
    expect((await server.get(`${SHOP}/configmaps/free`)).status).toBe(404)
    await server.patch(`${SHOP}/configmaps/held`, { metadata: { finalizers: null } }, 'merge')
    await waitUntil(isDeleted)
  })

  it('SYS-4 deletes pods first, and other objects only when all pods have ended', async () => {
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'settings' } })
    await server.post(`${SHOP}/pods`, {
      metadata: { name: 'web' },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    })
    await server.delete(SHOP)
    const namespace = await waitUntil(contentConditionOf)
    expect(contentConditionOf(namespace).message).toBe(
      'Some resources are remaining: pods. has 1 resource instances (pods/web)',
    )
    expect((await server.get(`${SHOP}/pods/web`)).json.metadata.deletionTimestamp).toBeTruthy()
    expect((await server.get(`${SHOP}/configmaps/settings`)).json.metadata.deletionTimestamp).toBe(undefined)
    await server.delete(`${SHOP}/pods/web`, { gracePeriodSeconds: 0 })
    await waitUntil(isDeleted)
    expect((await server.get(`${SHOP}/configmaps/settings`)).status).toBe(404)
  })

  it('SYS-4 reports a failed deletion of an object, deletes the other objects, and retries', async () => {
    await stop()
    let isRejected = true
    stop = startController((client) => ({
      ...client,
      delete: async (kind, ...args) => {
        if (isRejected && kind.plural === 'secrets') throw new ApiError(500, 'InternalError', 'cannot delete secrets')
        return client.delete(kind, ...args)
      },
    }))
    await server.post(`${SHOP}/secrets`, { metadata: { name: 'key' } })
    await server.post(`${SHOP}/configmaps`, { metadata: { name: 'settings' } })
    await server.delete(SHOP)
    const namespace = await waitUntil((namespace) => conditionsOf(namespace).NamespaceDeletionContentFailure)
    expect(conditionsOf(namespace).NamespaceDeletionContentFailure).toBe(
      'True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: cannot delete secrets',
    )
    expect((await server.get(`${SHOP}/configmaps/settings`)).status).toBe(404)
    isRejected = false
    await server.clock.advance(60_000)
    await waitUntil(isDeleted)
  })

  it('SYS-4 reports that all content is removed while a finalizer of another controller remains', async () => {
    await server.post('/api/v1/namespaces', { metadata: { name: 'kept', finalizers: ['example.com/hold'] } })
    await server.post('/api/v1/namespaces/kept/configmaps', { metadata: { name: 'settings' } })
    await server.delete('/api/v1/namespaces/kept')
    const namespace = await waitUntil((namespace) => contentConditionOf(namespace), '/api/v1/namespaces/kept')
    expect(conditionsOf(namespace).NamespaceContentRemaining).toBe(
      'False ContentRemoved: All content successfully removed',
    )
  })

  it("SYS-4 resumes a namespace's deletion after a restart", async () => {
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
