// Tests updates, patches and applies of objects that were stored with more values than new objects may have.
import { beforeEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { objectKey } from '../keys.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { encodeStored } from './stored-object.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const LARGE = `${MAPS}/large`
const STORED_KEYS = 15_000
const keysOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, 'a']))

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture()
  await server.post(MAPS, { metadata: { name: 'large' } })
  const key = objectKey(configMapKind, 'default', 'large')
  await server.store.transact((view) => {
    const storedMap = JSON.parse(Buffer.from(view.get(key)!.value).toString('utf8'))
    return [{ put: key, value: encodeStored({ ...storedMap, data: keysOf(STORED_KEYS) }) }]
  })
  return () => server.store.close()
})

const readLarge = async (): Promise<Json> => (await server.get(LARGE)).json

describe('an object that was stored with more than 10,000 values', () => {
  it('SYS-19 can be updated if the number of its values does not grow', async () => {
    const object = await readLarge()
    const changedMap = { ...object, data: { ...object.data, 'key-0': 'b' } }
    expect((await server.put(LARGE, changedMap)).status).toBe(200)
    expect((await readLarge()).data['key-0']).toBe('b')
    const smallerMap = { ...(await readLarge()), data: keysOf(STORED_KEYS - 1_000) }
    expect((await server.put(LARGE, smallerMap)).status).toBe(200)
  })

  it('SYS-19 cannot be updated if the number of its values grows', async () => {
    const object = await readLarge()
    const largerResponse = await server.put(LARGE, { ...object, data: keysOf(2 * STORED_KEYS) })
    expect(largerResponse.status).toBe(400)
    expect(largerResponse.json.message).toContain('fields')
    const list = { ...object, metadata: { ...object.metadata, finalizers: Array(2 * STORED_KEYS).fill('a/b') } }
    expect((await server.put(LARGE, list)).status).toBe(400)
  })

  it.each(['merge', 'strategic-merge'] as const)(
    'SYS-19 can be changed by a %s patch that adds no values, but not by one that adds some',
    async (type) => {
      expect((await server.patch(LARGE, { data: { 'key-0': 'b' } }, type)).status).toBe(200)
      expect((await readLarge()).data['key-0']).toBe('b')
      const data = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`other-${index}`, 'a']))
      expect((await server.patch(LARGE, { data }, type)).status).toBe(422)
    },
  )

  it('SYS-19 can be changed by a JSON patch', async () => {
    const operations = [{ op: 'replace', path: '/data/key-0', value: 'b' }]
    expect((await server.patch(LARGE, operations, 'json')).status).toBe(200)
    expect((await readLarge()).data['key-0']).toBe('b')
  })

  it('SYS-19 can be changed by an apply', async () => {
    const apply = (data: object) =>
      server.call(
        'PATCH',
        `${LARGE}?fieldManager=test&force=true`,
        JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data }),
        { 'content-type': 'application/apply-patch+yaml' },
      )
    expect((await apply({ 'key-0': 'b' })).status).toBe(200)
    expect((await readLarge()).data['key-0']).toBe('b')
  })

  it('SYS-19 can be updated by a commit and by a component in the process', async () => {
    const object = await readLarge()
    const write = { verb: 'update', apiVersion: 'v1', resource: 'configmaps', namespace: 'default', name: 'large' }
    const body = { ...object, data: { ...object.data, 'key-0': 'b' } }
    const commit = await server.post('/apis/stowage.dev/v1/commits', { writes: [{ ...write, body }] })
    expect(commit.status).toBe(200)
    expect((await readLarge()).data['key-0']).toBe('b')
    const { kind: _, apiVersion: __, ...nextMap } = { ...(await readLarge()), data: keysOf(STORED_KEYS) }
    await server.client().update(configMapKind, nextMap)
    expect((await readLarge()).data['key-0']).toBe('a')
  })
})

describe('an object with fewer values', () => {
  it('SYS-19 can be updated with the managed fields that the server has added', async () => {
    await server.post(MAPS, { metadata: { name: 'wide' }, data: keysOf(9_000) })
    const { json } = await server.get(`${MAPS}/wide`)
    expect((await server.put(`${MAPS}/wide`, { ...json, data: { ...json.data, 'key-0': 'b' } })).status).toBe(200)
  })

  it('SYS-19 cannot grow beyond 10,000 values by an apply, which is rejected with 400', async () => {
    await server.post(MAPS, { metadata: { name: 'wide' }, data: keysOf(9_900) })
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      data: Object.fromEntries(
        [...'abcdefghijklmnopqrstuvwxyz'].flatMap((a) => [...'abcdefghijklmnopqrstuvwxyz'].map((b) => [a + b, ''])),
      ),
    }
    const { status, json } = await server.call('PATCH', `${MAPS}/wide?fieldManager=test`, JSON.stringify(config), {
      'content-type': 'application/apply-patch+yaml',
    })
    expect(status).toBe(400)
    expect(json.message).toContain('the result of the apply cannot be handled: the object has more than 10000 fields')
  })
})
