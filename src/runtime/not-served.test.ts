// Tests caches, and controllers that use them, for a kind that the server disables and enables again.
// client/http/http-failures.test.ts covers the selection of versions.
import { afterEach, describe, expect, it } from 'vitest'
import { volumeAttributesClassKind as kind } from '../api/kinds/attributes-class/attributes-class.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { createServerFixture, type Json } from '../apiserver/server.fixture.ts'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import type { Client } from '../client/client.ts'
import { memoryMedium } from '../store/index.ts'
import { createCache } from './cache.ts'
import { createController, source } from './controller.ts'
import { done } from './outcome.ts'

const USER = { name: 'tester', groups: ['system:masters'] }
const ALL_VERSIONS_DISABLED = ['v1', 'v1beta1', 'v1alpha1']
  .map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
  .join(',')
const aClass = (name: string): Json => ({ metadata: { name }, driverName: 'd.example.com', parameters: { iops: '1' } })

let abort = new AbortController()
let runs: Promise<unknown>[] = []
let closeStore = async () => {}
afterEach(async () => {
  abort.abort()
  await Promise.all(runs)
  await closeStore()
  abort = new AbortController()
  runs = []
})

describe('a cache of a disabled kind', () => {
  /** Creates a server that can be restarted with another --runtime-config while the client runs. */
  async function createRestartableServer(initialConfig: string) {
    const medium = memoryMedium()
    const clock = manualClock()
    let api = await createServerFixture({ medium, runtimeConfig: initialConfig })
    let currentClient = inProcessClient(api.server.objects, USER)
    const client = new Proxy({} as Client, { get: (_, verb) => (currentClient as Json)[verb] })
    closeStore = () => api.store.close()
    return {
      client,
      clock,
      api: () => api,
      async restart(runtimeConfig = '') {
        await api.store.close()
        api = await createServerFixture({ medium, runtimeConfig })
        currentClient = inProcessClient(api.server.objects, USER)
      },
    }
  }
  const advanceUntil = async (clock: ReturnType<typeof manualClock>, condition: () => boolean) => {
    for (let i = 0; !condition(); i++) {
      if (i > 3_000) throw new Error('the condition did not become true')
      await new Promise((resolve) => setImmediate(resolve))
      if (i % 20 === 19) await clock.advance(1_000)
    }
  }
  function startCache(client: Client, clock: ReturnType<typeof manualClock>) {
    const lines: string[] = []
    const log = { ...silentLog, info: (_: unknown, text: string) => void lines.push(text) }
    const cache = createCache({ client, kind, clock, random: () => 0.5, log: log as Json })
    runs.push(cache.run(abort.signal))
    return { cache, lines, signal: abort.signal }
  }

  it('SYS-15 stays empty, logs once that the kind is not served, and syncs when the kind is enabled', async () => {
    const server = await createRestartableServer('')
    await server.api().post('/apis/storage.k8s.io/v1/volumeattributesclasses', aClass('silver'))
    await server.restart(ALL_VERSIONS_DISABLED)
    const { cache, lines, signal } = startCache(server.client, server.clock)
    expect(await cache.whenSyncedOrNotServed(signal)).toBe(true)
    expect(cache.isServed).toBe(false)
    expect([cache.isSynced, cache.size]).toEqual([false, 0])
    await server.clock.advance(300_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(lines).toEqual(['the server does not serve this kind; retrying with backoff'])
    await server.restart()
    await advanceUntil(server.clock, () => cache.isSynced)
    expect(cache.get({ name: 'silver' })).toMatchObject({ driverName: 'd.example.com' })
  })

  it('SYS-15 keeps its objects while the kind is disabled, and receives changes after the kind is enabled', async () => {
    const server = await createRestartableServer('')
    await server.api().post('/apis/storage.k8s.io/v1/volumeattributesclasses', aClass('silver'))
    const { cache, signal } = startCache(server.client, server.clock)
    await cache.whenSynced(signal)
    await server.restart(ALL_VERSIONS_DISABLED)
    for (let i = 0; i < 120; i++) {
      await server.clock.advance(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(cache.get({ name: 'silver' })).toBeDefined()
    await server.restart()
    await server.api().post('/apis/storage.k8s.io/v1/volumeattributesclasses', aClass('gold'))
    await advanceUntil(server.clock, () => cache.get({ name: 'gold' }) !== undefined)
    expect(cache.size).toBe(2)
  })

  it('SYS-15 blocks only the controllers that require the kind', async () => {
    const server = await createRestartableServer(ALL_VERSIONS_DISABLED)
    const { cache, signal } = startCache(server.client, server.clock)
    const { client, clock } = server
    const configMaps = createCache({ client, kind: configMapKind, clock, random: () => 0.5 })
    runs.push(configMaps.run(signal))
    const reconciledKeys: string[] = []
    const runController = (name: string, mayBeDisabled: boolean) =>
      createController({
        name,
        clock,
        random: () => 0.5,
        log: silentLog,
        sources: [
          source({ cache: configMaps, keysOf: ({ metadata }) => [metadata.name] }),
          source({ cache, keysOf: ({ metadata }) => [metadata.name], mayBeDisabled }),
        ],
        reconcile: async (key) => {
          reconciledKeys.push(`${name} ${key}`)
          return done
        },
      }).run(signal)
    runs.push(runController('requires-kind', false), runController('optional-kind', true))
    await server.api().post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } })
    await advanceUntil(clock, () => reconciledKeys.length > 0)
    for (let i = 0; i < 60; i++) await clock.advance(1_000)
    expect(reconciledKeys).toEqual(['optional-kind a'])
    await server.restart()
    await advanceUntil(clock, () => reconciledKeys.includes('requires-kind a'))
  })
})
