import { afterEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { keyOfObject } from '../client/object-key.ts'
import { createCacheSet } from './cache-set.ts'
import { createController, source } from './controller.ts'
import { flakyClient } from './flaky-client.fixture.ts'
import { done, stuck } from './outcome.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

const map = (name: string, wants = '') => ({
  metadata: { namespace: 'default', name, labels: { wants } },
  data: { k: 'v' },
})

async function aWorld() {
  const { server, clock, store } = await createServerFixture()
  const client = flakyClient(inProcessClient(server.objects, SYSTEM_USER))
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  stops.push(async () => {
    await caches.stop()
    await store.close()
  })
  return { client, clock, caches, store }
}

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 10_000) throw new Error('did not happen')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a controller', () => {
  it('reconciles existing objects, changed objects, and keys enqueued by another object', async () => {
    const { client, clock, caches } = await aWorld()
    await client.create(configMapKind, map('early'))
    const maps = caches.of(configMapKind)
    const namespaces = caches.of(namespaceKind)
    maps.addIndex('wants', ({ metadata }) => [metadata.labels?.wants ?? ''])
    const worked: string[] = []
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [
        source({ cache: maps, keysOf: (object) => [keyOfObject(object)] }),
        source({
          cache: namespaces,
          keysOf: ({ metadata: { name = '' } }) => maps.byIndex('wants', name).map(keyOfObject),
        }),
      ],
      reconcile: async (key) => {
        worked.push(key)
        const wants = maps.get(key)?.metadata.labels?.wants
        if (wants && !namespaces.get(wants)) return stuck(`namespace "${wants}" is missing`)
        return done
      },
    })
    const closing = new AbortController()
    const over = controller.run(closing.signal)
    await until(() => worked.includes('default/early'))
    await client.create(configMapKind, map('late', 'shop'))
    await until(() => controller.queue.standing('default/late')?.because === 'namespace "shop" is missing')
    await client.create(namespaceKind, { metadata: { name: 'shop' } })
    await until(() => controller.queue.standing('default/late') === undefined)
    expect(worked.filter((key) => key === 'default/late').length).toBe(2)
    closing.abort()
    await over
  })

  it('skips objects without work, unless the key is not done, had work before, or the object is deleted', async () => {
    const { client, clock, caches } = await aWorld()
    const maps = caches.of(configMapKind)
    const worked: string[] = []
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [
        source({
          cache: maps,
          keysOf: (object) => [keyOfObject(object)],
          concerns: ({ metadata }) => metadata.labels?.wants !== '',
        }),
      ],
      reconcile: async (key) => {
        worked.push(`${key} ${maps.get(key)?.metadata.labels?.wants ?? 'gone'}`)
        return key === 'default/stuck' ? stuck('for good') : done
      },
    })
    const closing = new AbortController()
    const over = controller.run(closing.signal)
    const wants = (name: string, value: string) =>
      client.patch(
        configMapKind,
        { namespace: 'default', name },
        { type: 'merge', body: { metadata: { labels: { wants: value } }, data: { k: `${worked.length}` } } },
      )
    const seen = (one: string) => until(() => worked.at(-1) === one)
    await client.create(configMapKind, map('quiet'))
    await client.create(configMapKind, map('busy', 'a'))
    await seen('default/busy a')
    await wants('quiet', '')
    await wants('busy', '')
    await seen('default/busy ')
    await wants('busy', '')
    await client.create(configMapKind, map('stuck', 'a'))
    await seen('default/stuck a')
    await wants('stuck', '')
    await seen('default/stuck ')
    await wants('stuck', '')
    await until(() => worked.filter((one) => one === 'default/stuck ').length === 2)
    await client.delete(configMapKind, { namespace: 'default', name: 'quiet' })
    await seen('default/quiet gone')
    expect(worked).toEqual([
      'default/busy a',
      'default/busy ',
      'default/stuck a',
      'default/stuck ',
      'default/stuck ',
      'default/quiet gone',
    ])
    closing.abort()
    await over
  })

  it('starts when all its caches are synced', async () => {
    const { client, clock, caches } = await aWorld()
    await client.create(configMapKind, map('a'))
    let sizeAtFirst: number | undefined
    const maps = caches.of(configMapKind)
    const namespaces = caches.of(namespaceKind)
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [source({ cache: maps, keysOf: (object) => [keyOfObject(object)] })],
      reads: [namespaces],
      reconcile: async () => {
        sizeAtFirst ??= namespaces.size
        return done
      },
    })
    const closing = new AbortController()
    const over = controller.run(closing.signal)
    await until(() => sizeAtFirst !== undefined)
    expect(sizeAtFirst).toBe(4)
    closing.abort()
    await over
  })
})

describe('a set of caches', () => {
  it('watches each kind once for all users, and stops with the last', async () => {
    const { client, caches, store } = await aWorld()
    const first = caches.acquire(configMapKind)
    const second = caches.acquire(configMapKind)
    const other = caches.acquire(configMapKind, { labelSelector: 'a=b' })
    expect(second.cache).toBe(first.cache)
    expect(other.cache).not.toBe(first.cache)
    await until(() => client.streams === 2)
    await first.release()
    await first.release()
    expect(client.streams).toBe(2)
    await second.release()
    expect(client.streams).toBe(1)
    await other.release()
    expect(client.streams).toBe(0)
    expect(store.stats().watchers).toBe(0)
    expect(caches.all()).toEqual([])
  })

  it('serves metadata from a full cache if there is one, and keeps metadata only otherwise', async () => {
    const { client, caches } = await aWorld()
    await client.create(configMapKind, { ...map('a'), metadata: { ...map('a').metadata, finalizers: ['test/held'] } })
    const namespaces = caches.of(namespaceKind)
    expect(caches.metadataOf(namespaceKind)).toBe(namespaces)

    const outlines = caches.metadataOf(configMapKind)
    expect(caches.metadataOf(configMapKind)).toBe(outlines)
    await until(() => outlines.size === 1)
    const [outline] = outlines.list()
    expect(outline).toMatchObject({ metadata: { namespace: 'default', name: 'a', finalizers: ['test/held'] } })
    expect(outline).not.toHaveProperty('data')

    const whole = caches.of(configMapKind)
    await until(() => whole.size === 1)
    expect(whole.list()[0]).toMatchObject({ data: { k: 'v' } })
    expect(client.streams).toBe(3)
  })
})
