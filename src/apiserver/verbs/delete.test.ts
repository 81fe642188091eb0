import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const PODS = '/api/v1/namespaces/default/pods'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const create = async (name: string, metadata: object = {}) =>
  (await api.post(MAPS, { metadata: { name, ...metadata } })).json
const listNames = async () => (await api.get(MAPS)).json.items.map(({ metadata }: Json) => metadata.name)

describe('DELETE', () => {
  it("returns a Status with the deleted object's uid", async () => {
    const { metadata } = await create('a')
    const { status, json } = await api.delete(`${MAPS}/a`)
    expect(status).toBe(200)
    expect(json).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: metadata.uid },
    })
    expect((await api.get(`${MAPS}/a`)).status).toBe(404)
  })

  it.each([
    ['ResourceQuota', '/api/v1/namespaces/default/resourcequotas', { spec: { hard: {} } }],
    ['ServiceAccount', '/api/v1/namespaces/default/serviceaccounts', {}],
    ['StorageClass', '/apis/storage.k8s.io/v1/storageclasses', { provisioner: 'example.com/p' }],
    ['CSIDriver', '/apis/storage.k8s.io/v1/csidrivers', { spec: {} }],
    ['CSINode', '/apis/storage.k8s.io/v1/csinodes', { spec: { drivers: [] } }],
  ])('returns the deleted object for a %s', async (kind, url, body) => {
    await api.post(url, { metadata: { name: 'a' }, ...body })
    expect((await api.delete(`${url}/a`)).json).toMatchObject({ kind, metadata: { name: 'a' } })
  })

  it('returns 404 for an object that does not exist', async () => {
    expect((await api.delete(`${MAPS}/a`)).json).toMatchObject({ code: 404, reason: 'NotFound' })
  })

  it('SYS-4 returns 409 and does not delete the object if a precondition fails', async () => {
    const { metadata } = await create('a')
    for (const preconditions of [
      { uid: 'other' },
      { resourceVersion: '1' },
      { uid: metadata.uid, resourceVersion: '1' },
    ]) {
      expect((await api.delete(`${MAPS}/a`, { preconditions })).json).toMatchObject({ code: 409, reason: 'Conflict' })
    }
    const { uid, resourceVersion } = metadata
    expect((await api.delete(`${MAPS}/a`, { preconditions: { uid, resourceVersion } })).status).toBe(200)
  })

  it('reads options from the query if there is no body', async () => {
    await create('a')
    expect((await api.delete(`${MAPS}/a?propagationPolicy=Orphan`)).json.metadata.finalizers).toEqual(['orphan'])
    expect((await api.delete(`${MAPS}/a?propagationPolicy=Sometimes`)).status).toBe(422)
  })

  it.each([`dryRun=All`, ''])('SYS-4 does not delete the object in a dry run (query %j)', async (query) => {
    await create('a')
    const { revision } = api.store
    const body = query ? undefined : { dryRun: ['All'] }
    expect((await api.delete(`${MAPS}/a?${query}`, body)).status).toBe(200)
    expect(api.store.revision).toBe(revision)
  })

  it('returns 403 for the namespaces default, kube-system and kube-public', async () => {
    for (const name of ['default', 'kube-system', 'kube-public']) {
      expect((await api.delete(`/api/v1/namespaces/${name}`)).json).toMatchObject({ code: 403, reason: 'Forbidden' })
    }
  })
})

describe('finalizers', () => {
  it('SYS-4 keep a deleted object, with a deletionTimestamp, until the last one is removed', async () => {
    await create('a', { finalizers: ['example.com/one', 'example.com/two'] })
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`)
    await api.clock.advance(5_000)
    const terminatingResponse = await api.delete(`${MAPS}/a`)
    expect(terminatingResponse.status).toBe(200)
    expect(terminatingResponse.json).toMatchObject({
      kind: 'ConfigMap',
      metadata: { deletionTimestamp: '2026-01-01T00:00:05Z', deletionGracePeriodSeconds: 0 },
    })
    await api.clock.advance(5_000)
    expect((await api.delete(`${MAPS}/a`)).json).toEqual(terminatingResponse.json) // a second delete changes nothing
    await api.patch(`${MAPS}/a`, { metadata: { finalizers: ['example.com/two'] } }, 'merge')
    const finalResponse = await api.patch(`${MAPS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect(finalResponse.status).toBe(200)
    expect(finalResponse.json.metadata.name).toBe('a')
    expect((await api.get(`${MAPS}/a`)).status).toBe(404)
    await watch.waitUntil((events) => events.length === 3)
    expect(watch.events.map(({ type }) => type)).toEqual(['MODIFIED', 'MODIFIED', 'DELETED'])
  })

  it('SYS-4 cannot be added to an object that is being deleted', async () => {
    await create('a', { finalizers: ['example.com/one'] })
    await api.delete(`${MAPS}/a`)
    const finalizers = ['example.com/one', 'example.com/late']
    expect((await api.patch(`${MAPS}/a`, { metadata: { finalizers } }, 'merge')).json).toMatchObject({
      code: 422,
      message: expect.stringContaining('found new finalizers []string{"example.com/late"}'),
      details: { causes: [{ field: 'metadata.finalizers' }] },
    })
  })

  it('SYS-4 keep an object, and only the first delete increases its generation', async () => {
    const url = '/apis/storage.k8s.io/v1/csidrivers'
    await api.post(url, { metadata: { name: 'd', finalizers: ['example.com/one'] }, spec: {} })
    expect((await api.delete(`${url}/d`)).json.metadata.generation).toBe(2)
    expect((await api.delete(`${url}/d`)).json.metadata.generation).toBe(2)
  })

  it('SYS-4 keep an object, and an update cannot remove its deletionTimestamp', async () => {
    await create('a', { finalizers: ['example.com/one'] })
    const { json } = await api.delete(`${MAPS}/a`)
    const { deletionTimestamp: _, ...metadata } = json.metadata
    expect((await api.put(`${MAPS}/a`, { ...json, metadata })).json.metadata.deletionTimestamp).toBe(
      json.metadata.deletionTimestamp,
    )
  })

  it.each([
    ['Background', 'none', undefined],
    ['Foreground', 'foregroundDeletion', ['foregroundDeletion']],
    ['Orphan', 'orphan', ['orphan']],
  ])('SYS-4 are added by the propagation policy %s: %s', async (propagationPolicy, _added, finalizers) => {
    await create('a')
    const { json } = await api.delete(`${MAPS}/a`, { propagationPolicy })
    expect(json.metadata.finalizers).toEqual(finalizers)
    expect((await api.get(`${MAPS}/a`)).status).toBe(finalizers ? 200 : 404)
  })

  it('can be removed from an object that is not being deleted', async () => {
    await create('a', { finalizers: ['example.com/one'] })
    await api.patch(`${MAPS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect((await api.get(`${MAPS}/a`)).status).toBe(200)
  })
})

describe('DELETE of a pod', () => {
  const aPod = (spec: object = {}) => ({
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  })

  it('sets a grace period, which later deletes can only shorten, if the pod is scheduled', async () => {
    await api.post(PODS, aPod({ nodeName: 'n', terminationGracePeriodSeconds: 30 }))
    const { json } = await api.delete(`${PODS}/p`)
    expect(json.metadata).toMatchObject({ deletionGracePeriodSeconds: 30, deletionTimestamp: '2026-01-01T00:00:30Z' })
    const longerResponse = await api.delete(`${PODS}/p`, { gracePeriodSeconds: 60 })
    expect(longerResponse.json.metadata.deletionGracePeriodSeconds).toBe(30)
    const shorterResponse = await api.delete(`${PODS}/p`, { gracePeriodSeconds: 5 })
    expect(shorterResponse.json.metadata).toMatchObject({
      deletionGracePeriodSeconds: 5,
      deletionTimestamp: '2026-01-01T00:00:05Z',
    })
    expect((await api.delete(`${PODS}/p`, { gracePeriodSeconds: 0 })).status).toBe(200)
    expect((await api.get(`${PODS}/p`)).status).toBe(404)
  })

  it('removes the pod immediately if it is not scheduled', async () => {
    await api.post(PODS, aPod())
    await api.delete(`${PODS}/p`)
    expect((await api.get(`${PODS}/p`)).status).toBe(404)
  })
})

describe('DELETE of a collection', () => {
  it('SYS-4 deletes the selected objects and returns the list', async () => {
    await create('a', { labels: { batch: '1' } })
    await create('b', { labels: { batch: '1' }, finalizers: ['example.com/hold'] })
    await create('c')
    const { status, json } = await api.delete(`${MAPS}?labelSelector=batch%3D1`)
    expect(status).toBe(200)
    expect(json.kind).toBe('ConfigMapList')
    expect(json.items.map(({ metadata }: Json) => metadata.name)).toEqual(['a', 'b'])
    expect(await listNames()).toEqual(['b', 'c'])
    expect((await api.get(`${MAPS}/b`)).json.metadata.deletionTimestamp).toBeTruthy()
  })

  it('SYS-4 accepts options in the body', async () => {
    await create('a')
    await api.delete(MAPS, { dryRun: ['All'] })
    expect(await listNames()).toEqual(['a'])
    await api.delete(MAPS, { propagationPolicy: 'Foreground' })
    expect((await api.get(`${MAPS}/a`)).json.metadata.finalizers).toEqual(['foregroundDeletion'])
  })

  it('is not allowed across namespaces, or for namespaces', async () => {
    expect((await api.delete('/api/v1/configmaps')).status).toBe(405)
    expect((await api.delete('/api/v1/namespaces')).status).toBe(405)
  })
})
