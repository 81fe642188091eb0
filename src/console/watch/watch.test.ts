// Tests watches of tabs over one socket: list, changes, sharing, resuming, errors, a restart of the API server and the end of the
// session.
import { describe, expect, it, vi } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { createConsoleFixture } from '../console.fixture.ts'
import type { ConsoleObject, WatchMessage } from '../protocol.ts'

const PATH = '/api/v1/namespaces/default/configmaps'
const WAIT = { timeout: 20_000, interval: 10 }

const objectsIn = (message: WatchMessage): readonly ConsoleObject[] => ('objects' in message ? message.objects : [])

const namesIn = (message: WatchMessage): string[] => objectsIn(message).map(({ metadata }) => metadata.name)

const isType =
  (type: WatchMessage['type'], id = 1) =>
  (message: WatchMessage) =>
    message.type === type && message.id === id

const hasName = (type: WatchMessage['type'], name: string, id = 1) => {
  const matchesType = isType(type, id)
  return (message: WatchMessage) => matchesType(message) && namesIn(message).includes(name)
}

async function createFixture() {
  const fixture = await createConsoleFixture()
  const { client } = fixture
  return {
    ...fixture,
    create: (name: string, data: Record<string, string> = {}) =>
      client.create(configMapKind, { metadata: { namespace: 'default', name }, data }),
    change: (name: string, data: Record<string, string>) =>
      client.patch(configMapKind, { namespace: 'default', name }, { type: 'merge', body: { data } }),
    remove: (name: string) => client.delete(configMapKind, { namespace: 'default', name }),
  }
}

describe('watches of the console', () => {
  it('SYS-13 sends the list, then changes with their revision', async () => {
    const { console, create, change, remove } = await createFixture()
    await create('a')
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    expect(await tab.until(isType('RESET'))).toEqual({ id: 1, type: 'RESET' })
    const items = await tab.until(isType('ITEMS'))
    expect(namesIn(items)).toContain('a')
    const { rev } = (await tab.until(isType('SYNCED'))) as { rev: string }
    const { metadata } = await create('b')
    const added = await tab.until(hasName('ADDED', 'b'))
    expect(added).toMatchObject({ rev: metadata.resourceVersion, objects: [{ kind: 'ConfigMap', apiVersion: 'v1' }] })
    expect(Number(metadata.resourceVersion)).toBeGreaterThan(Number(rev))
    await change('b', { x: '1' })
    expect(await tab.until(hasName('MODIFIED', 'b'))).toMatchObject({ objects: [{ data: { x: '1' } }] })
    await remove('b')
    await tab.until(hasName('DELETED', 'b'))
    tab.send({ op: 'unwatch', id: 1 })
    tab.send({ op: 'watch', id: 2, path: PATH })
    await tab.until(isType('SYNCED', 2))
    await create('c')
    await tab.until(hasName('ADDED', 'c', 2))
    expect(tab.messages.filter(({ id }) => id === 1)).toEqual([])
  })

  it('removes managed fields and the last applied configuration, and gives listed objects their kind', async () => {
    const { console, client } = await createFixture()
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'kept' }
    await client.create(configMapKind, { metadata: { namespace: 'default', name: 'a', annotations } })
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    const items = await tab.until(hasName('ITEMS', 'a'))
    const object = objectsIn(items).find(({ metadata }) => metadata.name === 'a')!
    expect(object).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
    expect(object.metadata.annotations).toEqual({ note: 'kept' })
    expect(object.metadata.managedFields).toBe(undefined)
  })

  it('sends long lists in messages of at most 500 objects', async () => {
    const { console, client } = await createFixture()
    const create = (index: number) =>
      client.create(configMapKind, { metadata: { namespace: 'default', name: `map-${index}` } })
    for (let start = 0; start < 600; start += 100)
      await Promise.all(Array.from({ length: 100 }, (_, offset) => create(start + offset)))
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    await vi.waitFor(() => expect(tab.messages.some(isType('SYNCED'))).toBe(true), WAIT)
    const items = tab.messages.filter(isType('ITEMS')).map(namesIn)
    expect(items.length).toBeGreaterThan(1)
    for (const names of items) expect(names.length).toBeLessThanOrEqual(500)
    expect(new Set(items.flat()).size).toBe(items.flat().length)
    expect(items.flat().filter((name) => name.startsWith('map-'))).toHaveLength(600)
  })

  it('SYS-13 shares one list and one watch of the API server between tabs with the same path', async () => {
    const { console, connection, create } = await createFixture()
    const first = await console.openTab()
    first.send({ op: 'watch', id: 1, path: PATH })
    await first.until(isType('SYNCED'))
    const readSamples = async () => (await console.request('/data/history')).body.samples
    await vi.waitFor(async () => expect(await readSamples()).toHaveLength(1), WAIT) // its requests are counted too
    const credentials = vi.spyOn(connection, 'credentials') // called once for each request
    const second = await console.openTab()
    second.send({ op: 'watch', id: 1, path: PATH })
    second.send({ op: 'watch', id: 2, path: `${PATH}?limit=1&labelSelector=` })
    await second.until(isType('SYNCED', 2))
    expect(credentials).not.toHaveBeenCalled()
    await create('a')
    await first.until(hasName('ADDED', 'a'))
    await second.until(hasName('ADDED', 'a', 2))
  })

  it('SYS-13 resumes at the revision of a tab that reconnects', async () => {
    const { console, create, change, remove } = await createFixture()
    await create('a')
    await create('b')
    await create('c')
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    const { rev } = (await tab.until(isType('SYNCED'))) as { rev: string }
    tab.socket.close()
    await change('a', { x: '1' })
    await remove('b')
    const next = await console.openTab()
    next.send({ op: 'watch', id: 7, path: PATH, rev })
    await next.until(hasName('MODIFIED', 'a', 7))
    await next.until(hasName('DELETED', 'b', 7))
    await create('d')
    await next.until(hasName('ADDED', 'd', 7))
    expect(next.messages.filter(isType('RESET', 7))).toEqual([])
  })

  it('sends the whole list to a tab with an expired revision', async () => {
    const { console, create } = await createFixture()
    await create('a')
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH, rev: '1' })
    await tab.until(isType('RESET'))
    await tab.until(isType('SYNCED'))
  })

  it('reports a path that is not forwarded, a kind that is not served and a single object as final errors of that watch', async () => {
    const { console, create } = await createFixture()
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    tab.send({ op: 'watch', id: 2, path: '/api/v1/secrets' })
    tab.send({ op: 'watch', id: 3, path: '/apis/nothing.example/v1/things' })
    tab.send({ op: 'watch', id: 4, path: `${PATH}/one` })
    const listErrors = () => tab.messages.flatMap((message) => (message.type === 'ERROR' ? [message] : []))
    await vi.waitFor(() => expect(listErrors()).toHaveLength(3), WAIT)
    expect(Object.fromEntries(listErrors().map(({ id, code }) => [id, code]))).toEqual({ 2: 403, 3: 404, 4: 400 })
    for (const error of listErrors()) expect(error).not.toHaveProperty('retryAfterMs')
    await tab.until(isType('SYNCED'))
    await create('a')
    await tab.until(hasName('ADDED', 'a'))
  })

  it('SYS-13 reports an unavailable API server, and continues without a reset when it is available again', async () => {
    const { console, listener, restart, create, api } = await createFixture()
    await create('a')
    const tab = await console.openTab()
    tab.send({ op: 'watch', id: 1, path: PATH })
    await tab.until(isType('SYNCED'))
    await listener.stop()
    const error = await tab.until(isType('ERROR'))
    expect(error).toMatchObject({ code: 503, retryAfterMs: expect.any(Number) })
    await api.post(PATH, { metadata: { name: 'b' } })
    await restart()
    await tab.until(hasName('ADDED', 'b'))
    expect(tab.messages.filter(isType('RESET'))).toEqual([])
  })

  it('closes the socket when the session ends, and on unknown commands', async () => {
    const { console } = await createFixture()
    const tab = await console.openTab()
    tab.socket.send('{"op":"dance","id":1}')
    await vi.waitFor(() => expect(tab.closeCode).toBe(1007), WAIT)
    const other = await console.openTab()
    await console.request('/session', { method: 'DELETE' })
    await vi.waitFor(() => expect(other.closeCode).toBe(4401), WAIT)
  })
})
