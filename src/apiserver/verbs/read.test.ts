import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const HISTORY_MS = 60_000

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture({ history: { keepMs: HISTORY_MS } })
})
afterEach(() => api.store.close())

const create = async (...names: string[]) => {
  for (const name of names) await api.post(MAPS, { metadata: { name }, data: { name } })
}
const namesOf = ({ json }: { json: Json }) => json.items.map(({ metadata }: Json) => metadata.name)
const list = (query = '') => api.get(`${MAPS}?${query}`)

describe('GET of one object', () => {
  it('returns the object with kind, apiVersion and resourceVersion', async () => {
    await create('a')
    const { status, headers, json } = await api.get(`${MAPS}/a`)
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json')
    expect(json).toMatchObject({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'a', namespace: 'default', resourceVersion: String(api.store.revision) },
      data: { name: 'a' },
    })
  })

  it('returns 404 with the resource name if the object does not exist', async () => {
    expect((await api.get(`${MAPS}/nowhere`)).json).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'configmaps "nowhere" not found',
      reason: 'NotFound',
      details: { name: 'nowhere', kind: 'configmaps' },
      code: 404,
    })
    expect((await api.get('/apis/storage.k8s.io/v1/storageclasses/nowhere')).json).toMatchObject({
      message: 'storageclasses.storage.k8s.io "nowhere" not found',
      details: { name: 'nowhere', group: 'storage.k8s.io', kind: 'storageclasses' },
    })
  })

  it('returns at least the requested version, or 504 if it does not exist yet', async () => {
    await create('a')
    const { revision } = api.store
    expect((await api.get(`${MAPS}/a?resourceVersion=${revision}`)).status).toBe(200)
    expect((await api.get(`${MAPS}/a?resourceVersion=1`)).status).toBe(200)
    const timeout = await api.advanceUntilSettled(api.get(`${MAPS}/a?resourceVersion=${revision + 5}`))
    expect(timeout.status).toBe(504)
    expect(timeout.headers['retry-after']).toBe('1')
  })

  it('waits for a version that is written shortly afterwards', async () => {
    const request = api.get(`${MAPS}/a?resourceVersion=${api.store.revision + 1}`)
    await create('a')
    expect((await api.advanceUntilSettled(request)).json.metadata.name).toBe('a')
  })
})

describe('GET of a collection', () => {
  it('returns the objects in order of their names, with the resourceVersion of the list', async () => {
    expect((await list()).json).toEqual({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: String(api.store.revision) },
      items: [],
    })
    await create('b', 'a', 'c')
    expect(namesOf(await list())).toEqual(['a', 'b', 'c'])
    expect((await list()).json.metadata.resourceVersion).toBe(String(api.store.revision))
  })

  it('returns the objects of all namespaces for a path without a namespace', async () => {
    await create('a')
    await api.post('/api/v1/namespaces/kube-system/configmaps', { metadata: { name: 'b' } })
    expect(namesOf(await api.get('/api/v1/configmaps'))).toEqual(['a', 'b'])
  })

  it('returns an empty list for a namespace that does not exist', async () => {
    expect(namesOf(await api.get('/api/v1/namespaces/nowhere/configmaps'))).toEqual([])
  })

  describe('with a resourceVersion', () => {
    let snapshotRevision: number
    beforeEach(async () => {
      await create('a')
      snapshotRevision = api.store.revision
      await create('b')
    })

    it.each([
      ['the newest version', '', ['a', 'b']],
      ['any version', 'resourceVersion=0', ['a', 'b']],
      ['version N or newer', 'resourceVersion=N', ['a', 'b']],
      ['exactly version N', 'resourceVersion=N&limit=500', ['a']],
      ['version N or newer', 'resourceVersion=N&resourceVersionMatch=NotOlderThan', ['a', 'b']],
      ['version N or newer', 'resourceVersion=N&resourceVersionMatch=NotOlderThan&limit=5', ['a', 'b']],
      ['exactly version N', 'resourceVersion=N&resourceVersionMatch=Exact', ['a']],
    ])('returns %s for the query %j', async (_, query, expected) => {
      const response = await list(query.replace('N', String(snapshotRevision)))
      expect(namesOf(response)).toEqual(expected)
      const isExact = expected.length === 1
      expect(response.json.metadata.resourceVersion).toBe(String(isExact ? snapshotRevision : api.store.revision))
    })

    it('SYS-3 returns 410 Expired for a version that is too old for Exact', async () => {
      await api.patch(`${MAPS}/a`, { data: { n: '1' } })
      await api.clock.advance(10 * HISTORY_MS)
      const { status, json } = await list(`resourceVersion=${snapshotRevision}&resourceVersionMatch=Exact`)
      expect(status).toBe(410)
      expect(json.reason).toBe('Expired')
      expect((await list(`resourceVersion=${snapshotRevision}`)).status).toBe(200)
    })

    it('returns 504 for a future version', async () => {
      const response = await api.advanceUntilSettled(list(`resourceVersion=${api.store.revision + 1}`))
      expect(response.json).toMatchObject({
        code: 504,
        reason: 'Timeout',
        details: { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] },
      })
    })
  })

  describe('with a limit', () => {
    it('returns pages of one snapshot despite changes between the pages', async () => {
      await create('a', 'b', 'c', 'd', 'e')
      const firstPage = await list('limit=2')
      expect(namesOf(firstPage)).toEqual(['a', 'b'])
      expect(firstPage.json.metadata.remainingItemCount).toBe(3)
      await api.delete(`${MAPS}/c`)
      await create('bb', 'f')
      await api.patch(`${MAPS}/d`, { data: { name: 'changed' } })
      const secondPage = await list(`limit=2&continue=${firstPage.json.metadata.continue}`)
      expect(namesOf(secondPage)).toEqual(['c', 'd'])
      expect(secondPage.json.items[1].data.name).toBe('d')
      expect(secondPage.json.metadata.resourceVersion).toBe(firstPage.json.metadata.resourceVersion)
      const thirdPage = await list(`limit=2&continue=${secondPage.json.metadata.continue}`)
      expect(namesOf(thirdPage)).toEqual(['e'])
      expect(thirdPage.json.metadata).toEqual({ resourceVersion: firstPage.json.metadata.resourceVersion })
    })

    it('applies the limit to the objects that match a selector, without remainingItemCount', async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
        await api.post(MAPS, { metadata: { name, labels: { odd: String('ace'.includes(name)) } } })
      }
      const firstPage = await list('limit=2&labelSelector=odd%3Dtrue')
      expect(namesOf(firstPage)).toEqual(['a', 'c'])
      expect(firstPage.json.metadata.remainingItemCount).toBeUndefined()
      const secondPage = await list(`limit=2&labelSelector=odd%3Dtrue&continue=${firstPage.json.metadata.continue}`)
      expect(namesOf(secondPage)).toEqual(['e'])
      expect(secondPage.json.metadata.continue).toBeUndefined()
    })

    it('SYS-3 returns 410 for an expired token, with a token that continues at the newest version', async () => {
      await create('a', 'b', 'c')
      const firstPage = await list('limit=1')
      await api.delete(`${MAPS}/b`)
      await create('bb')
      await api.clock.advance(10 * HISTORY_MS)
      const expiredPage = await list(`limit=1&continue=${firstPage.json.metadata.continue}`)
      expect(expiredPage.status).toBe(410)
      expect(expiredPage.json).toMatchObject({ reason: 'Expired', metadata: { continue: expect.any(String) } })
      const resumedPage = await list(`limit=5&continue=${expiredPage.json.metadata.continue}`)
      expect(namesOf(resumedPage)).toEqual(['bb', 'c'])
      expect(resumedPage.json.metadata.resourceVersion).toBe(String(api.store.revision))
    })

    it.each([
      'garbage',
      '%00',
      Buffer.from('{}').toString('base64url'),
      Buffer.from('null').toString('base64url'),
      Buffer.from('{"v":1,"rv":0,"start":"a"}').toString('base64url'),
      Buffer.from('{"v":1,"rv":5,"start":""}').toString('base64url'),
      Buffer.from('{"v":1,"rv":"5","start":"a"}').toString('base64url'),
      Buffer.from('{"v":2,"rv":5,"start":"a"}').toString('base64url'),
    ])('SYS-10 returns 400 for the token %s', async (token) => {
      expect((await list(`limit=1&continue=${token}`)).json).toMatchObject({ code: 400, reason: 'BadRequest' })
    })
  })

  it.each([
    ['labelSelector=app%3Dshop', ['b', 'c']],
    ['labelSelector=app!%3Dshop', ['a']],
    ['labelSelector=app', ['b', 'c']],
    ['labelSelector=!app', ['a']],
    ['labelSelector=app%3Dshop,tier%20in%20(db,cache)', ['c']],
    ['labelSelector=rank%3E5', ['c']],
    ['fieldSelector=metadata.name%3Db', ['b']],
    ['fieldSelector=metadata.name!%3Db,metadata.namespace%3Ddefault', ['a', 'c']],
    ['labelSelector=app&fieldSelector=metadata.name%3Dc', ['c']],
  ])('selects by %s', async (query, expected) => {
    await api.post(MAPS, { metadata: { name: 'a' } })
    await api.post(MAPS, { metadata: { name: 'b', labels: { app: 'shop', rank: '3' } } })
    await api.post(MAPS, { metadata: { name: 'c', labels: { app: 'shop', tier: 'db', rank: '7' } } })
    expect(namesOf(await list(query))).toEqual(expected)
  })

  it('SYS-10 rejects an unknown field selector and names the supported fields', async () => {
    const { status, json } = await list('fieldSelector=data.a%3Db')
    expect(status).toBe(400)
    expect(json.message).toMatch(/field label not supported: "data\.a".*metadata\.name/)
  })
})

describe('content negotiation of GET', () => {
  const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }
  const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' }
  const PARTIAL_LIST = { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' }

  it('SYS-2 returns a list as a table, with a limit', async () => {
    await create('a', 'b')
    const { json } = await api.get(`${MAPS}?limit=1`, TABLE)
    expect(json).toMatchObject({
      kind: 'Table',
      metadata: { resourceVersion: String(api.store.revision), remainingItemCount: 1 },
      rows: [{ cells: ['a', 1, '0s'], object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } }],
    })
    expect(json.metadata.continue).toBeTruthy()
    expect((await api.get(`${MAPS}/a`, TABLE)).json.rows).toHaveLength(1)
  })

  it('SYS-2 includes the whole object or no object in the rows of a table on request', async () => {
    await create('a')
    const rowObject = (await api.get(`${MAPS}?includeObject=Object`, TABLE)).json.rows[0].object
    expect(rowObject).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { name: 'a' } })
    expect((await api.get(`${MAPS}?includeObject=None`, TABLE)).json.rows[0].object ?? null).toBeNull()
    expect((await api.get(`${MAPS}?includeObject=Everything`, TABLE)).status).toBe(400)
  })

  it('returns only the metadata of an object or a list', async () => {
    await create('a')
    const partial = (await api.get(`${MAPS}/a`, PARTIAL)).json
    expect(partial).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    })
    expect(partial.data).toBeUndefined()
    expect((await api.get(MAPS, PARTIAL_LIST)).json).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: String(api.store.revision) },
      items: [{ kind: 'PartialObjectMetadata', metadata: { name: 'a' } }],
    })
  })

  it('returns 406 for the list form of an object and for the object form of a list', async () => {
    await create('a')
    expect((await api.get(MAPS, PARTIAL)).status).toBe(406)
    expect((await api.get(`${MAPS}/a`, PARTIAL_LIST)).status).toBe(406)
  })

  it('returns an object as YAML', async () => {
    await create('a')
    const { headers, text } = await api.get(`${MAPS}/a`, { accept: 'application/yaml' })
    expect(headers['content-type']).toBe('application/yaml')
    expect(text).toMatch(/^kind: ConfigMap$/m)
    expect(text).toMatch(/^ {2}name: a$/m)
  })
})
