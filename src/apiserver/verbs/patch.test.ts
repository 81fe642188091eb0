import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts'

let api: ServerFixture
let storedMap: Json
beforeEach(async () => {
  api = await createServerFixture()
  storedMap = (await api.post(MAPS, { metadata: { name: 'a' }, data: { k: '1', l: '2' } })).json
})
afterEach(() => api.store.close())

const sendPatch = (body: string, type: string) => api.call('PATCH', `${MAPS}/a`, body, { 'content-type': type })
const getData = async () => (await api.get(`${MAPS}/a`)).json.data

describe('PATCH', () => {
  it('merges a merge patch, and removes fields that are null', async () => {
    const { status, json } = await api.patch(`${MAPS}/a`, { data: { k: null, m: '3' } }, 'merge')
    expect(status).toBe(200)
    expect(json.data).toEqual({ l: '2', m: '3' })
  })

  it('runs the operations of a JSON patch in order', async () => {
    const operations = [
      { op: 'test', path: '/data/k', value: '1' },
      { op: 'move', from: '/data/k', path: '/data/moved' },
      { op: 'add', path: '/data/new', value: '3' },
    ]
    expect((await api.patch(`${MAPS}/a`, operations, 'json')).json.data).toEqual({ l: '2', moved: '1', new: '3' })
  })

  it('sets an absent field by the replace operation of a JSON patch, as the Kubernetes volume-modify tests do', async () => {
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeName: 'v' }
    await api.post(claims, { metadata: { name: 'c' }, spec })
    await api.patch(`${claims}/c/status`, { status: { phase: 'Bound' } })
    const operations = [{ op: 'replace', path: '/spec/volumeAttributesClassName', value: 'gold' }]
    const { status, json } = await api.patch(`${claims}/c`, operations, 'json')
    expect([status, json.spec.volumeAttributesClassName]).toEqual([200, 'gold'])
  })

  it('SYS-4 applies all operations of a JSON patch or none', async () => {
    const operations = [
      { op: 'add', path: '/data/new', value: '3' },
      { op: 'test', path: '/data/k', value: 'other' },
    ]
    expect((await api.patch(`${MAPS}/a`, operations, 'json')).status).toBe(422)
    expect(await getData()).toEqual({ k: '1', l: '2' })
  })

  it('merges lists of a strategic merge patch by their merge keys', async () => {
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

  it('SYS-4 returns 409 if the patch has a stale resourceVersion', async () => {
    const patch = { metadata: { resourceVersion: storedMap.metadata.resourceVersion }, data: { k: '2' } }
    expect((await api.patch(`${MAPS}/a`, patch)).status).toBe(200)
    expect((await api.patch(`${MAPS}/a`, patch)).json).toMatchObject({ code: 409, reason: 'Conflict' })
    expect((await api.patch(`${MAPS}/a`, patch, 'merge')).json).toMatchObject({ code: 409, reason: 'Conflict' })
  })

  it('SYS-4 without a resourceVersion does not conflict with concurrent patches', async () => {
    const patches = Array.from({ length: 50 }, (_, n) => api.patch(`${MAPS}/a`, { data: { [`n${n}`]: 'yes' } }))
    expect(new Set((await Promise.all(patches)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(Object.keys(await getData())).toHaveLength(52)
  })

  it('SYS-4 rejects a patch with another uid', async () => {
    const { status } = await api.patch(`${MAPS}/a`, { metadata: { uid: 'other' } }, 'merge')
    expect([409, 422]).toContain(status)
  })

  it('SYS-4 does not change the object in a dry run', async () => {
    const { json } = await api.patch(`${MAPS}/a?dryRun=All`, { data: { k: '9' } })
    expect(json.data.k).toBe('9')
    expect(await getData()).toEqual({ k: '1', l: '2' })
  })

  it('ignores the charset of its media type', async () => {
    expect((await sendPatch('{"data":{"k":"2"}}', 'application/merge-patch+json; charset=utf-8')).status).toBe(200)
  })

  it.each([
    'application/json',
    'text/plain',
    '',
    'application/apply-patch+cbor',
    'application/vnd.kubernetes.protobuf',
  ])('SYS-10 returns 415 for the content type %j', async (type) => {
    expect((await sendPatch('{}', type)).json).toMatchObject({ code: 415, reason: 'UnsupportedMediaType' })
  })

  it.each([
    ['invalid JSON', '{"data":', 'merge', 400],
    ['no content', '', 'merge', 400],
    ['a list instead of an object', '[]', 'merge', 400],
    ['an object instead of a list', '{}', 'json', 400],
    ['another name', '{"metadata":{"name":"b"}}', 'merge', 400],
    ['another kind', '{"kind":"Secret"}', 'merge', 400],
    ['a field of the wrong type', '{"data":5}', 'merge', 422],
    ['a missing path', '[{"op":"remove","path":"/data/nowhere"}]', 'json', 422],
    ['an unknown operation', '[{"op":"shake","path":"/data"}]', 'json', 400],
    ['an unknown directive', '{"data":{"$patch":"shake"}}', 'strategic-merge', 422],
    [
      'too many operations',
      JSON.stringify(Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/data/k', value: '1' }))),
      'json',
      413,
    ],
  ])('SYS-10 rejects a patch with %s', async (_, body, type, code) => {
    const { status, json } = await sendPatch(body, `application/${type}-patch+json`)
    expect({ status, kind: json.kind, code: json.code }).toEqual({ status: code, kind: 'Status', code })
    expect((await api.get(`${MAPS}/a`)).json).toEqual(storedMap)
  })

  it('returns 404 for an object that does not exist', async () => {
    expect((await api.patch(`${MAPS}/nowhere`, { data: {} })).status).toBe(404)
  })

  it('allows force only for apply', async () => {
    expect([400, 422]).toContain((await api.patch(`${MAPS}/a?force=true`, { data: {} })).status)
  })
})
