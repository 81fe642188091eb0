import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts'

let api: ServerFixture
let stored: Json
beforeEach(async () => {
  api = await createServerFixture()
  stored = (await api.post(MAPS, { metadata: { name: 'a' }, data: { k: '1', l: '2' } })).json
})
afterEach(() => api.store.close())

const raw = (body: string, type: string) => api.call('PATCH', `${MAPS}/a`, body, { 'content-type': type })
const data = async () => (await api.get(`${MAPS}/a`)).json.data

describe('PATCH', () => {
  it('merges, and null removes', async () => {
    const { status, json } = await api.patch(`${MAPS}/a`, { data: { k: null, m: '3' } }, 'merge')
    expect(status).toBe(200)
    expect(json.data).toEqual({ l: '2', m: '3' })
  })

  it('runs operations in order', async () => {
    const operations = [
      { op: 'test', path: '/data/k', value: '1' },
      { op: 'move', from: '/data/k', path: '/data/moved' },
      { op: 'add', path: '/data/new', value: '3' },
    ]
    expect((await api.patch(`${MAPS}/a`, operations, 'json')).json.data).toEqual({ l: '2', moved: '1', new: '3' })
  })

  it('SYS-4 applies all operations or none', async () => {
    const operations = [
      { op: 'add', path: '/data/new', value: '3' },
      { op: 'test', path: '/data/k', value: 'other' },
    ]
    expect((await api.patch(`${MAPS}/a`, operations, 'json')).status).toBe(422)
    expect(await data()).toEqual({ k: '1', l: '2' })
  })

  it('merges lists by their merge keys', async () => {
    await api.post(ACCOUNTS, { metadata: { name: 's' }, secrets: [{ name: 'a' }, { name: 'b' }] })
    const patch = { secrets: [{ name: 'b', $patch: 'delete' }, { name: 'c' }] }
    const { json } = await api.patch(`${ACCOUNTS}/s`, patch)
    expect(json.secrets.map(({ name }: Json) => name).sort()).toEqual(['a', 'c'])
  })

  it('removes one of several finalizers', async () => {
    await api.patch(`${MAPS}/a`, { metadata: { finalizers: ['example.com/a', 'example.com/b'] } })
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] } }
    expect((await api.patch(`${MAPS}/a`, patch)).json.metadata.finalizers).toEqual(['example.com/b'])
  })

  it('SYS-4 is conditional with a resourceVersion', async () => {
    const patch = { metadata: { resourceVersion: stored.metadata.resourceVersion }, data: { k: '2' } }
    expect((await api.patch(`${MAPS}/a`, patch)).status).toBe(200)
    expect((await api.patch(`${MAPS}/a`, patch)).json).toMatchObject({ code: 409, reason: 'Conflict' })
    expect((await api.patch(`${MAPS}/a`, patch, 'merge')).json).toMatchObject({ code: 409, reason: 'Conflict' })
  })

  it('SYS-4 without a resourceVersion never conflicts with another patch', async () => {
    const patches = Array.from({ length: 50 }, (_, n) => api.patch(`${MAPS}/a`, { data: { [`n${n}`]: 'yes' } }))
    expect(new Set((await Promise.all(patches)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(Object.keys(await data())).toHaveLength(52)
  })

  it('SYS-4 rejects another uid', async () => {
    const { status } = await api.patch(`${MAPS}/a`, { metadata: { uid: 'other' } }, 'merge')
    expect([409, 422]).toContain(status)
  })

  it('SYS-4 changes nothing in a dry run', async () => {
    const { json } = await api.patch(`${MAPS}/a?dryRun=All`, { data: { k: '9' } })
    expect(json.data.k).toBe('9')
    expect(await data()).toEqual({ k: '1', l: '2' })
  })

  it('ignores the charset of its media type', async () => {
    expect((await raw('{"data":{"k":"2"}}', 'application/merge-patch+json; charset=utf-8')).status).toBe(200)
  })

  it.each([
    'application/json',
    'text/plain',
    '',
    'application/apply-patch+cbor',
    'application/vnd.kubernetes.protobuf',
  ])('SYS-10 returns 415 for type %j', async (type) => {
    expect((await raw('{}', type)).json).toMatchObject({ code: 415, reason: 'UnsupportedMediaType' })
  })

  it.each([
    ['no JSON', '{"data":', 'merge', 400],
    ['nothing', '', 'merge', 400],
    ['a list where an object belongs', '[]', 'merge', 400],
    ['an object where a list belongs', '{}', 'json', 400],
    ['a name', '{"metadata":{"name":"b"}}', 'merge', 400],
    ['a kind', '{"kind":"Secret"}', 'merge', 400],
    ['a wrong type', '{"data":5}', 'merge', 422],
    ['a path that is not there', '[{"op":"remove","path":"/data/nowhere"}]', 'json', 422],
    ['an unknown operation', '[{"op":"shake","path":"/data"}]', 'json', 400],
    ['an unknown directive', '{"data":{"$patch":"shake"}}', 'strategic-merge', 422],
    [
      'too many operations',
      JSON.stringify(Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/data/k', value: '1' }))),
      'json',
      413,
    ],
  ])('SYS-10 with %s is rejected and changes nothing', async (_, body, type, code) => {
    const { status, json } = await raw(body, `application/${type}-patch+json`)
    expect({ status, kind: json.kind, code: json.code }).toEqual({ status: code, kind: 'Status', code })
    expect((await api.get(`${MAPS}/a`)).json).toEqual(stored)
  })

  it('returns 404 for an object that does not exist', async () => {
    expect((await api.patch(`${MAPS}/nowhere`, { data: {} })).status).toBe(404)
  })

  it('allows force only for apply', async () => {
    expect([400, 422]).toContain((await api.patch(`${MAPS}/a?force=true`, { data: {} })).status)
  })
})
