import { afterEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { createCacheSet } from './cache-set.ts'
import { createFlakyClient } from './flaky-client.fixture.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

const CONFIG_MAP = { metadata: { namespace: 'default', name: 'a', finalizers: ['example.com/hold'] }, data: { k: 'v' } }

async function createFixture() {
  const { server, clock, store } = await createServerFixture()
  const client = createFlakyClient(inProcessClient(server.objects, SYSTEM_USER))
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  stops.push(async () => {
    await caches.stop()
    await store.close()
  })
  return { client, caches, store }
}

async function waitUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 10_000) throw new Error('timed out waiting for a condition')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a cache set', () => {
  it('watches once for all leases of a kind and selection, and stops with the last lease', async () => {
    const { client, caches, store } = await createFixture()
    const firstLease = caches.acquire(configMapKind)
    const secondLease = caches.acquire(configMapKind)
    const selectedLease = caches.acquire(configMapKind, { labelSelector: 'a=b' })
    expect(secondLease.cache).toBe(firstLease.cache)
    expect(selectedLease.cache).not.toBe(firstLease.cache)
    await waitUntil(() => client.streamCount === 2)
    await firstLease.release()
    await firstLease.release()
    expect(client.streamCount).toBe(2)
    await secondLease.release()
    expect(client.streamCount).toBe(1)
    await selectedLease.release()
    expect(client.streamCount).toBe(0)
    expect(store.stats().watchers).toBe(0)
    expect(caches.all()).toEqual([])
  })

  it('returns an existing full cache for metadata, or otherwise caches metadata only', async () => {
    const { client, caches } = await createFixture()
    await client.create(configMapKind, CONFIG_MAP)
    const namespaces = caches.of(namespaceKind)
    expect(caches.metadataOf(namespaceKind)).toBe(namespaces)

    const metadataCache = caches.metadataOf(configMapKind)
    expect(caches.metadataOf(configMapKind)).toBe(metadataCache)
    await waitUntil(() => metadataCache.size === 1)
    const [cached] = metadataCache.list()
    expect(cached).toMatchObject({ metadata: { namespace: 'default', name: 'a', finalizers: ['example.com/hold'] } })
    expect(cached).not.toHaveProperty('data')

    const fullCache = caches.of(configMapKind)
    await waitUntil(() => fullCache.size === 1)
    expect(fullCache.list()[0]).toMatchObject({ data: { k: 'v' } })
    expect(client.streamCount).toBe(3)
  })
})
