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
const names = ({ json }: { json: Json }) => json.items.map(({ metadata }: Json) => metadata.name)
const list = (query = '') => api.get(`${MAPS}?${query}`)

describe('GET of one object', () => {
  it('returns it with kind, apiVersion and resourceVersion', async () => {
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

  it('returns 404 with the plural if it does not exist', async () => {
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
    const late = await api.advanceUntilSettled(api.get(`${MAPS}/a?resourceVersion=${revision + 5}`))
    expect(late.status).toBe(504)
    expect(late.headers['retry-after']).toBe('1')
  })

  it('waits for a version that is about to exist', async () => {
    const asked = api.get(`${MAPS}/a?resourceVersion=${api.store.revision + 1}`)
    await create('a')
    expect((await api.advanceUntilSettled(asked)).json.metadata.name).toBe('a')
  })
})

describe('GET of a collection', () => {
  it('returns a list in order of names with its resourceVersion, also if it is empty', async () => {
    expect((await list()).json).toEqual({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: String(api.store.revision) },
      items: [],
    })
    await create('b', 'a', 'c')
    expect(names(await list())).toEqual(['a', 'b', 'c'])
    expect((await list()).json.metadata.resourceVersion).toBe(String(api.store.revision))
  })

  it('returns all namespaces at the cluster scope', async () => {
    await create('a')
    await api.post('/api/v1/namespaces/kube-system/configmaps', { metadata: { name: 'b' } })
    expect(names(await api.get('/api/v1/configmaps'))).toEqual(['a', 'b'])
  })

  it('returns an empty list for a namespace that does not exist', async () => {
    expect(names(await api.get('/api/v1/namespaces/nowhere/configmaps'))).toEqual([])
  })

  describe('at a version', () => {
    let before: number
    beforeEach(async () => {
      await create('a')
      before = api.store.revision
      await create('b')
    })

    it.each([
      ['unset: the newest', '', ['a', 'b']],
      ['0: any', 'resourceVersion=0', ['a', 'b']],
      ['n: at least as new', 'resourceVersion=N', ['a', 'b']],
      ['n with a limit: exactly that', 'resourceVersion=N&limit=500', ['a']],
      ['n, NotOlderThan: at least as new', 'resourceVersion=N&resourceVersionMatch=NotOlderThan', ['a', 'b']],
      [
        'n, NotOlderThan with a limit: at least as new',
        'resourceVersion=N&resourceVersionMatch=NotOlderThan&limit=5',
        ['a', 'b'],
      ],
      ['n, Exact: exactly that', 'resourceVersion=N&resourceVersionMatch=Exact', ['a']],
    ])('%s', async (_, query, expected) => {
      const answer = await list(query.replace('N', String(before)))
      expect(names(answer)).toEqual(expected)
      const exact = expected.length === 1
      expect(answer.json.metadata.resourceVersion).toBe(String(exact ? before : api.store.revision))
    })

    it('SYS-3 Exact and too old: 410 Expired', async () => {
      await api.patch(`${MAPS}/a`, { data: { n: '1' } })
      await api.clock.advance(10 * HISTORY_MS)
      const { status, json } = await list(`resourceVersion=${before}&resourceVersionMatch=Exact`)
      expect(status).toBe(410)
      expect(json.reason).toBe('Expired')
      expect((await list(`resourceVersion=${before}`)).status).toBe(200)
    })

    it('in the future: 504 after three seconds', async () => {
      const answer = await api.advanceUntilSettled(list(`resourceVersion=${api.store.revision + 1}`))
      expect(answer.json).toMatchObject({
        code: 504,
        reason: 'Timeout',
        details: { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] },
      })
    })
  })

  describe('in pages', () => {
    it('shows one snapshot despite changes between pages', async () => {
      await create('a', 'b', 'c', 'd', 'e')
      const first = await list('limit=2')
      expect(names(first)).toEqual(['a', 'b'])
      expect(first.json.metadata.remainingItemCount).toBe(3)
      await api.delete(`${MAPS}/c`)
      await create('bb', 'f')
      await api.patch(`${MAPS}/d`, { data: { name: 'changed' } })
      const second = await list(`limit=2&continue=${first.json.metadata.continue}`)
      expect(names(second)).toEqual(['c', 'd'])
      expect(second.json.items[1].data.name).toBe('d')
      expect(second.json.metadata.resourceVersion).toBe(first.json.metadata.resourceVersion)
      const third = await list(`limit=2&continue=${second.json.metadata.continue}`)
      expect(names(third)).toEqual(['e'])
      expect(third.json.metadata).toEqual({ resourceVersion: first.json.metadata.resourceVersion })
    })

    it('counts only matches of a selector, without remainingItemCount', async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
        await api.post(MAPS, { metadata: { name, labels: { odd: String('ace'.includes(name)) } } })
      }
      const first = await list('limit=2&labelSelector=odd%3Dtrue')
      expect(names(first)).toEqual(['a', 'c'])
      expect(first.json.metadata.remainingItemCount).toBeUndefined()
      const second = await list(`limit=2&labelSelector=odd%3Dtrue&continue=${first.json.metadata.continue}`)
      expect(names(second)).toEqual(['e'])
      expect(second.json.metadata.continue).toBeUndefined()
    })

    it('SYS-3 returns 410 for an expired token, with one that continues at the newest state', async () => {
      await create('a', 'b', 'c')
      const first = await list('limit=1')
      await api.delete(`${MAPS}/b`)
      await create('bb')
      await api.clock.advance(10 * HISTORY_MS)
      const late = await list(`limit=1&continue=${first.json.metadata.continue}`)
      expect(late.status).toBe(410)
      expect(late.json).toMatchObject({ reason: 'Expired', metadata: { continue: expect.any(String) } })
      const resumed = await list(`limit=5&continue=${late.json.metadata.continue}`)
      expect(names(resumed)).toEqual(['bb', 'c'])
      expect(resumed.json.metadata.resourceVersion).toBe(String(api.store.revision))
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
    ])('SYS-10 returns 400 for a token with %s', async (token) => {
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
    expect(names(await list(query))).toEqual(expected)
  })

  it('SYS-10 rejects an unknown field selector and names the supported fields', async () => {
    const { status, json } = await list('fieldSelector=data.a%3Db')
    expect(status).toBe(400)
    expect(json.message).toMatch(/field label not supported: "data\.a".*metadata\.name/)
  })
})

describe('forms of a response', () => {
  const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }
  const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' }
  const PARTIAL_LIST = { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1' }

  it('SYS-2 returns a list as a table, also in pages', async () => {
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

  it('SYS-2 includes the whole object or nothing in rows on request', async () => {
    await create('a')
    const whole = (await api.get(`${MAPS}?includeObject=Object`, TABLE)).json.rows[0].object
    expect(whole).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { name: 'a' } })
    expect((await api.get(`${MAPS}?includeObject=None`, TABLE)).json.rows[0].object ?? null).toBeNull()
    expect((await api.get(`${MAPS}?includeObject=Everything`, TABLE)).status).toBe(400)
  })

  it('returns only metadata of an object or a list', async () => {
    await create('a')
    const one = (await api.get(`${MAPS}/a`, PARTIAL)).json
    expect(one).toMatchObject({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' } })
    expect(one.data).toBeUndefined()
    expect((await api.get(MAPS, PARTIAL_LIST)).json).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: String(api.store.revision) },
      items: [{ kind: 'PartialObjectMetadata', metadata: { name: 'a' } }],
    })
  })

  it('returns 406 for the list form of an object, and the reverse', async () => {
    await create('a')
    expect((await api.get(MAPS, PARTIAL)).status).toBe(406)
    expect((await api.get(`${MAPS}/a`, PARTIAL_LIST)).status).toBe(406)
  })

  it('YAML', async () => {
    await create('a')
    const { headers, text } = await api.get(`${MAPS}/a`, { accept: 'application/yaml' })
    expect(headers['content-type']).toBe('application/yaml')
    expect(text).toMatch(/^kind: ConfigMap$/m)
    expect(text).toMatch(/^ {2}name: a$/m)
  })
})
