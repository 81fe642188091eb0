import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import type { Kind } from '../api/kind.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { ApiError } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import type { Random } from '../base/clock.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import type { Client, WatchEvent, WatchRequest } from '../client/client.ts'
import { memoryMedium } from '../store/index.ts'
import { type Cache, createCache } from './cache.ts'
import { createFlakyClient, type FlakyClient } from './flaky-client.fixture.ts'

const aConfigMap = (name: string, k = '0', labels: Record<string, string> = {}) => ({
  metadata: { namespace: 'default', name, labels },
  data: { k },
})
const ref = (name: string) => ({ namespace: 'default', name })
const valuePatch = (k: string) => ({ type: 'merge', body: { data: { k } } }) as const
const CONNECTION_RESET = new ApiError(503, 'ServiceUnavailable', 'connection reset')

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

interface CacheFixtureOptions {
  entriesMax?: number
  random?: Random
  watchList?: FlakyClient['watchList']
}

async function startCache(options: CacheFixtureOptions = {}) {
  const fixture = await createServerFixture({ history: { entriesMax: options.entriesMax ?? 10_000 } })
  const { clock } = fixture
  const serverClient = inProcessClient(fixture.server.objects, SYSTEM_USER)
  const client = createFlakyClient(serverClient)
  client.watchList = options.watchList ?? 'served'
  const cache = createCache({
    client,
    kind: configMapKind,
    clock,
    random: options.random ?? (() => 0.5),
  })
  const notifications: string[] = []
  cache.subscribe({
    added: ({ metadata, data }) => void notifications.push(`+${metadata.name}=${data?.k}`),
    updated: (next, old) => void notifications.push(`~${next.metadata.name}=${old.data?.k}→${next.data?.k}`),
    deleted: ({ metadata }) => void notifications.push(`-${metadata.name}`),
  })
  const abort = new AbortController()
  const cacheRun = cache.run(abort.signal)
  stops.push(async () => {
    abort.abort()
    await cacheRun
    await fixture.store.close()
  })
  return { fixture, clock, serverClient, client, cache, notifications, abort, store: fixture.store }
}

/** Advances the clock until the condition holds. Throws after `withinMs` of simulated time. */
async function waitUntil(clock: ManualClock, condition: () => boolean, withinMs = 120_000): Promise<void> {
  for (let waitedMs = 0; !condition(); waitedMs += 100) {
    if (waitedMs > withinMs) throw new Error(`the condition did not hold within ${withinMs} ms of simulated time`)
    await clock.advance(100)
    for (let i = 0; i < 5; i++) await nextTurn()
  }
}

const contentOf = (cache: Cache<any>) =>
  Object.fromEntries(cache.list().map(({ metadata, data }) => [metadata.name, data?.k ?? '']))

describe('a cache', () => {
  it('adds a long first list in several turns of the event loop, and is synced after the last one', async () => {
    const count = 2_500
    const items = Array.from({ length: count }, (_, index) => ({
      metadata: { namespace: 'default', name: `m-${index}`, uid: `u-${index}`, resourceVersion: '7' },
    }))
    async function* watch(_kind: Kind, { signal }: WatchRequest): AsyncGenerator<WatchEvent<never>> {
      for (const object of items) yield { type: 'added', object: object as never }
      yield { type: 'bookmark', resourceVersion: '7', endsInitialEvents: true }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const client = { watch } as unknown as Client
    const cache = createCache({ client, kind: configMapKind, clock: manualClock(), random: () => 0.5 })
    const sizes = new Set<number>()
    cache.subscribe({ added: () => void setImmediate(() => sizes.add(cache.size)) })
    const abort = new AbortController()
    const run = cache.run(abort.signal)
    stops.push(async () => {
      abort.abort()
      await run
    })
    expect(await cache.whenSynced(abort.signal)).toBe(true)
    await nextTurn()
    expect([...sizes]).toEqual([1_000, 2_000, count])
  })

  it('contains the listed objects, applies every change, and passes the old object to subscribers', async () => {
    const { clock, serverClient, cache, notifications } = await startCache()
    await serverClient.create(configMapKind, aConfigMap('a'))
    await waitUntil(clock, () => cache.isSynced && cache.size === 1)
    await serverClient.patch(configMapKind, ref('a'), valuePatch('1'))
    await serverClient.create(configMapKind, aConfigMap('b'))
    await serverClient.delete(configMapKind, ref('a'))
    await waitUntil(clock, () => notifications.length === 4)
    expect(notifications).toEqual(['+a=0', '~a=0→1', '+b=0', '-a'])
    expect(cache.get('default/b')?.data).toEqual({ k: '0' })
    expect(cache.get(ref('a'))).toBeUndefined()
    expect(cache.list('default').map(({ metadata }) => metadata.name)).toEqual(['b'])
    expect(cache.list('shop')).toEqual([])
  })

  it('shares the data of objects with an in-process server, and omits managedFields', async () => {
    const { clock, serverClient, cache } = await startCache()
    const createdObject = await serverClient.create(configMapKind, aConfigMap('a'))
    await waitUntil(clock, () => cache.size === 1)
    const cached = cache.get(ref('a'))!
    expect(cached.data).toBe(createdObject.data)
    expect(Object.isFrozen(cached)).toBe(true)
    expect(cached.metadata.managedFields).toBeUndefined()
  })

  it('applies the result of a write before the watch delivers it, once, and only to objects in the cache', async () => {
    const { clock, serverClient, cache, notifications } = await startCache()
    await serverClient.create(configMapKind, aConfigMap('a'))
    await waitUntil(clock, () => cache.size === 1)
    const writtenObject = await serverClient.patch(configMapKind, ref('a'), valuePatch('1'))
    cache.applyWriteResult(writtenObject)
    expect(contentOf(cache)).toEqual({ a: '1' })
    const deletedObject = await serverClient.create(configMapKind, aConfigMap('gone'))
    await serverClient.delete(configMapKind, ref('gone'))
    cache.applyWriteResult(deletedObject)
    cache.applyWriteResult({ metadata: {} } as typeof deletedObject) // the decoded response to a write that removed its object
    expect(contentOf(cache)).toEqual({ a: '1' })
    await serverClient.patch(configMapKind, ref('a'), valuePatch('2'))
    await waitUntil(clock, () => notifications.includes('~a=1→2'))
    cache.applyWriteResult(writtenObject) // ignored, because the cache has a newer version
    expect(contentOf(cache)).toEqual({ a: '2' })
    expect(notifications.filter((line) => line.includes('a='))).toEqual(['+a=0', '~a=0→1', '~a=1→2'])
  })

  it('does not reduce the object of an event that it already has', async () => {
    const { clock, serverClient } = await startCache()
    const reducedVersions: string[] = []
    const cache = createCache({
      client: serverClient,
      kind: configMapKind,
      clock,
      random: () => 0.5,
      reduce: (object) => {
        reducedVersions.push(object.metadata.resourceVersion)
        return object
      },
    })
    const abort = new AbortController()
    const cacheRun = cache.run(abort.signal)
    stops.push(() => cacheRun)
    await serverClient.create(configMapKind, aConfigMap('a'))
    await waitUntil(clock, () => cache.size === 1)
    const ownWrite = serverClient.patch(configMapKind, ref('a'), valuePatch('1'))
    cache.applyWriteResult(await ownWrite)
    const later = await serverClient.patch(configMapKind, ref('a'), valuePatch('2'))
    await waitUntil(clock, () => cache.get(ref('a'))?.metadata.resourceVersion === later.metadata.resourceVersion)
    abort.abort()
    expect(reducedVersions).toEqual([...new Set(reducedVersions)])
    expect(reducedVersions).toContain((await ownWrite).metadata.resourceVersion)
  })

  it('finds existing and changed objects by index, and throws for an unknown index', async () => {
    const { clock, serverClient, cache } = await startCache()
    await serverClient.create(configMapKind, aConfigMap('a', 'red'))
    await waitUntil(clock, () => cache.size === 1)
    cache.addIndex('k', ({ data }) => (data?.k ? [data.k] : []))
    const namesByKey = (key: string) => cache.byIndex('k', key).map(({ metadata }) => metadata.name)
    expect(namesByKey('red')).toEqual(['a'])
    await serverClient.create(configMapKind, aConfigMap('b', 'red'))
    await serverClient.patch(configMapKind, ref('a'), valuePatch('blue'))
    await waitUntil(clock, () => namesByKey('blue').length === 1)
    expect(namesByKey('red')).toEqual(['b'])
    await serverClient.delete(configMapKind, ref('a'))
    await waitUntil(clock, () => cache.size === 1)
    expect(namesByKey('blue')).toEqual([])
    expect(() => cache.byIndex('nope', 'x')).toThrow('There is no index named "nope"')
  })

  it('resolves whenReached to true when the watch has delivered the write, or to false on abort', async () => {
    const { clock, serverClient, cache, abort } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    const { metadata } = await serverClient.create(configMapKind, aConfigMap('a'))
    expect(await cache.whenReached(metadata.resourceVersion!, abort.signal)).toBe(true)
    expect(cache.get(ref('a'))).toBeDefined()
    const unreached = cache.whenReached('999999', abort.signal)
    abort.abort()
    expect(await unreached).toBe(false)
  })

  it('continues to call the other subscribers after one has thrown', async () => {
    const { clock, serverClient, cache, notifications } = await startCache()
    cache.subscribe({
      added: () => {
        throw new Error('injected')
      },
    })
    await serverClient.create(configMapKind, aConfigMap('a'))
    await waitUntil(clock, () => notifications.length === 1)
    await serverClient.create(configMapKind, aConfigMap('b'))
    await waitUntil(clock, () => notifications.length === 2)
  })
})

describe('a cache whose watch fails', () => {
  it('resumes from the last version without a list and without repeating an event', async () => {
    const { clock, serverClient, client, cache, notifications } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    for (let round = 0; round < 5; round++) {
      client.cutStreams(round % 2 ? CONNECTION_RESET : undefined)
      await serverClient.create(configMapKind, aConfigMap(`m${round}`))
      await waitUntil(clock, () => cache.size === round + 1)
    }
    expect(notifications).toEqual([0, 1, 2, 3, 4].map((round) => `+m${round}=0`))
    expect(client.watches.filter(({ sendInitialEvents }) => sendInitialEvents).length).toBe(1)
    expect(client.listCount).toBe(0)
  })

  it('delivers all changes of one version if the stream fails between them', async () => {
    const { clock, serverClient, client, cache, notifications, store } = await startCache()
    await serverClient.create(configMapKind, aConfigMap('a'))
    await serverClient.create(configMapKind, aConfigMap('b'))
    await waitUntil(clock, () => cache.size === 2)
    const stop = cache.subscribe({ deleted: () => client.cutStreams(CONNECTION_RESET) }) // after the first of the two changes
    // The store deletes several objects in one version when they expire together.
    await store.transact(() => ['a', 'b'].map((name) => ({ delete: `core/configmaps/default/${name}` })))
    await waitUntil(clock, () => cache.size === 0)
    stop()
    expect(notifications).toEqual(['+a=0', '+b=0', '-a', '-b'])
  })

  it('detects deletions during a disconnect even if the history was compacted', async () => {
    const { clock, serverClient, client, cache, notifications } = await startCache({ entriesMax: 20 })
    await serverClient.create(configMapKind, aConfigMap('gone'))
    await serverClient.create(configMapKind, aConfigMap('kept'))
    await serverClient.create(configMapKind, aConfigMap('replaced'))
    await waitUntil(clock, () => cache.size === 3)
    client.watchError = CONNECTION_RESET
    client.cutStreams(CONNECTION_RESET)
    await serverClient.delete(configMapKind, ref('gone'))
    await serverClient.delete(configMapKind, ref('replaced'))
    await serverClient.create(configMapKind, aConfigMap('replaced', 'new'))
    for (let i = 1; i <= 50; i++) await serverClient.patch(configMapKind, ref('kept'), valuePatch(String(i)))
    notifications.length = 0
    client.watchError = undefined
    await waitUntil(clock, () => cache.get(ref('kept'))?.data?.k === '50')
    expect(notifications.toSorted()).toEqual(['+replaced=new', '-gone', '-replaced', '~kept=0→50'])
    expect(cache.stats()).toMatchObject({ relists: 2, foundByRelist: 3 })
  })

  it('replaces a silent stream and reports the age of its last event', async () => {
    const { clock, serverClient, client, cache } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    client.silenceStreams()
    await serverClient.create(configMapKind, aConfigMap('a'))
    await clock.advance(200_000)
    expect(cache.size).toBe(0)
    expect(cache.lastEventAgeMs()).toBeGreaterThanOrEqual(199_000)
    await waitUntil(clock, () => cache.size === 1, 600_000)
    expect(cache.lastEventAgeMs()).toBeLessThan(1_000)
  })

  it.each([
    ['503', CONNECTION_RESET],
    ['429', new ApiError(429, 'TooManyRequests', 'slow down')],
    ['410', new ApiError(410, 'Expired', 'too old')],
    ['403', new ApiError(403, 'Forbidden', 'no')],
  ])(
    'tries more than 15 and fewer than 60 times in ten minutes if the server responds with %s',
    async (_code, error) => {
      const { clock, client, cache } = await startCache()
      await waitUntil(clock, () => cache.isSynced)
      client.watchError = error
      client.listError = error
      client.cutStreams(CONNECTION_RESET)
      const attemptsBefore = client.watches.length + client.listCount
      await clock.advance(600_000)
      const attempts = client.watches.length + client.listCount - attemptsBefore
      expect(attempts).toBeGreaterThan(15)
      expect(attempts).toBeLessThan(60)
    },
  )

  it('SYS-29 resumes without a pause if the server ends a stream that has lasted a minute', async () => {
    const { clock, serverClient, client, cache } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    for (let i = 1; i <= 3; i++) {
      await clock.advance(60_000)
      client.cutStreams()
      await serverClient.create(configMapKind, aConfigMap(`m${i}`))
      for (let turn = 0; turn < 20; turn++) await nextTurn()
      expect(cache.size).toBe(i)
    }
    expect(client.watches.length).toBe(4)
  })

  it('backs off if the server ends every stream within a second', async () => {
    const { clock, client, cache } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    const watchesBefore = client.watches.length
    for (let i = 0; i < 600; i++) {
      client.cutStreams()
      await clock.advance(1_000)
    }
    expect(client.watches.length - watchesBefore).toBeLessThan(60)
  })

  it('reconnects no earlier than Retry-After', async () => {
    const { clock, client, cache } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    client.watchError = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 60 })
    client.cutStreams(CONNECTION_RESET)
    await waitUntil(clock, () => client.watches.length === 2)
    await clock.advance(59_000)
    expect(client.watches.length).toBe(2)
    await clock.advance(2_000)
    expect(client.watches.length).toBe(3)
  })

  it('reconnects at different times after caches failed at the same time', async () => {
    const times = new Set<number>()
    for (const chance of [0, 0.3, 0.6, 0.9]) {
      const { clock, client, cache } = await startCache({ random: () => chance })
      await waitUntil(clock, () => cache.isSynced)
      client.cutStreams(CONNECTION_RESET)
      const start = clock.nowMs()
      await waitUntil(clock, () => client.watches.length === 2)
      times.add(clock.nowMs() - start)
    }
    expect(times.size).toBe(4)
  })

  it.each(['ignored', 'rejected', 'broken'] as const)('lists if WatchList is %s', async (watchList) => {
    const { clock, serverClient, client, cache, notifications } = await startCache({ watchList })
    for (const name of ['a', 'b']) await serverClient.create(configMapKind, aConfigMap(name))
    await waitUntil(clock, () => cache.size === 2)
    await serverClient.delete(configMapKind, ref('a'))
    await waitUntil(clock, () => notifications.length === 3)
    expect(notifications).toEqual(['+a=0', '+b=0', '-a'])
    expect(client.listCount).toBe(1)
  })

  it('has one stream and no additional watcher or listener after a thousand reconnects', async () => {
    const { clock, fixture, serverClient, client, cache, abort } = await startCache()
    await waitUntil(clock, () => cache.isSynced)
    const listeners = countListeners(abort.signal)
    const watchers = fixture.store.stats().watchers
    for (let round = 0; round < 1_000; round++) {
      client.cutStreams(round % 3 ? CONNECTION_RESET : undefined)
      await clock.advance(70_000)
      for (let i = 0; client.streamCount === 0 && i < 20; i++) await nextTurn()
    }
    expect(client.watches.length).toBeGreaterThan(1_000)
    expect(client.streamCount).toBe(1)
    expect(countListeners(abort.signal)).toBe(listeners)
    expect(fixture.store.stats().watchers).toBe(watchers)
    await serverClient.create(configMapKind, aConfigMap('added-later'))
    await waitUntil(clock, () => cache.size === 1)
  })

  it('stays up to date after the server is restarted with the same and with an empty disk', async () => {
    const medium = memoryMedium()
    const firstServer = await createServerFixture({ medium })
    const serverClient = () => inProcessClient(server.server.objects, SYSTEM_USER)
    let server = firstServer
    const cacheClock = manualClock()
    const clock = {
      ...cacheClock,
      advance: async (ms: number) => void (await Promise.all([cacheClock.advance(ms), server.clock.advance(ms)])),
    }
    const client = createFlakyClient({ ...serverClient(), watch: (...args) => serverClient().watch(...args) })
    const cache = createCache({ client, kind: configMapKind, clock, random: () => 0.5 })
    const abort = new AbortController()
    const cacheRun = cache.run(abort.signal)
    for (const name of ['a', 'b', 'c']) await serverClient().create(configMapKind, aConfigMap(name))
    await waitUntil(clock, () => cache.size === 3)

    await firstServer.store.close()
    server = await createServerFixture({ medium })
    await serverClient().delete(configMapKind, ref('b'))
    await waitUntil(clock, () => cache.size === 2)

    await server.store.close()
    server = await createServerFixture() // with an empty disk, resourceVersions start again
    await serverClient().create(configMapKind, aConfigMap('z'))
    await waitUntil(clock, () => cache.size === 1 && cache.get(ref('z')) !== undefined, 600_000)
    abort.abort()
    await cacheRun
  })

  it("SYS-3 converges to the server's state after any writes and watch failures, without repeated events", async () => {
    const action = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ do: fc.constant('write' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constant('delete' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('commit' as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constantFrom('cut', 'break', 'silence', 'failWatches', 'allowWatches') }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 5_000 }) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), fc.boolean(), async (actions, isWatchListRejected) => {
        const { clock, serverClient, client, cache } = await startCache({
          entriesMax: 30,
          watchList: isWatchListRejected ? 'rejected' : 'served',
        })
        const deliveredObjects = new Map<string, { uid: string; version: number }>()
        const checkEvent = ({ metadata }: any, event: 'added' | 'updated') => {
          const deliveredObject = deliveredObjects.get(metadata.name)
          expect(event === 'added' ? deliveredObject === undefined : deliveredObject?.uid === metadata.uid).toBe(true)
          if (deliveredObject) expect(Number(metadata.resourceVersion)).toBeGreaterThan(deliveredObject.version)
          deliveredObjects.set(metadata.name, { uid: metadata.uid, version: Number(metadata.resourceVersion) })
        }
        cache.subscribe({
          added: (object) => checkEvent(object, 'added'),
          updated: (next) => checkEvent(next, 'updated'),
          deleted: ({ metadata }) => expect(deliveredObjects.delete(metadata.name!)).toBe(true),
        })
        let k = 0
        const write = async (name: string) => {
          const patched = await serverClient
            .patch(configMapKind, ref(name), valuePatch(String(++k)))
            .catch(() => undefined)
          if (!patched) await serverClient.create(configMapKind, aConfigMap(name, String(k)))
        }
        for (const step of actions) {
          if (step.do === 'write') await write(step.name)
          else if (step.do === 'delete') await serverClient.delete(configMapKind, ref(step.name)).catch(() => {})
          else if (step.do === 'commit') {
            const patches = cache.list().map(({ metadata }) => ({
              do: 'patch' as const,
              kind: configMapKind,
              ref: ref(metadata.name!),
              patch: valuePatch(String(++k)),
            }))
            await Promise.all(patches.map((patch) => serverClient.commit([patch]).catch(() => {})))
          } else if (step.do === 'cut') client.cutStreams()
          else if (step.do === 'break') client.cutStreams(CONNECTION_RESET)
          else if (step.do === 'silence') client.silenceStreams()
          else if (step.do === 'failWatches') client.watchError = CONNECTION_RESET
          else if (step.do === 'allowWatches') client.watchError = undefined
          else if (step.do === 'compact') for (let i = 0; i < 40; i++) await write('filler')
          else if (step.do === 'wait') await clock.advance(step.ms)
        }
        client.watchError = undefined
        const { items } = await serverClient.list(configMapKind)
        const expectedContent = Object.fromEntries(items.map(({ metadata, data }) => [metadata.name, data?.k ?? '']))
        await waitUntil(
          clock,
          () =>
            JSON.stringify(contentOf(cache), sortedKeys(expectedContent)) ===
              JSON.stringify(expectedContent, sortedKeys(expectedContent)) && cache.size === items.length,
          900_000,
        )
        expect([...deliveredObjects.keys()].toSorted()).toEqual(Object.keys(expectedContent).toSorted())
        for (const stop of stops.splice(0)) await stop()
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})

const sortedKeys = (object: object) => Object.keys(object).toSorted()

/** Returns the number of listeners of an AbortSignal, from the Node.js internal state. */
function countListeners(signal: AbortSignal): number {
  const eventSymbols = Object.getOwnPropertySymbols(signal).filter((symbol) => symbol.description === 'kEvents')
  const events = (signal as any)[eventSymbols[0]!] as Map<string, { size: number }> | undefined
  return events?.get('abort')?.size ?? 0
}
