import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { ApiError } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import type { Random } from '../base/clock.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import { memoryMedium } from '../store/index.ts'
import { type Cache, createCache } from './cache.ts'
import { type FlakyClient, flakyClient } from './flaky-client.fixture.ts'

const map = (name: string, k = '0', labels: Record<string, string> = {}) => ({
  metadata: { namespace: 'default', name, labels },
  data: { k },
})
const ref = (name: string) => ({ namespace: 'default', name })
const set = (k: string) => ({ type: 'merge', body: { data: { k } } }) as const
const broken = new ApiError(503, 'ServiceUnavailable', 'connection reset')

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

interface CacheTrial {
  entriesMax?: number
  random?: Random
  watchList?: FlakyClient['watchList']
}

async function aCache(options: CacheTrial = {}) {
  const fixture = await createServerFixture({ history: { entriesMax: options.entriesMax ?? 10_000 } })
  const { clock } = fixture
  const real = inProcessClient(fixture.server.objects, SYSTEM_USER)
  const client = flakyClient(real)
  client.watchList = options.watchList ?? 'served'
  const cache = createCache({
    client,
    kind: configMapKind,
    clock,
    random: options.random ?? (() => 0.5),
  })
  const notified: string[] = []
  cache.subscribe({
    added: ({ metadata, data }) => void notified.push(`+${metadata.name}=${data?.k}`),
    updated: (next, old) => void notified.push(`~${next.metadata.name}=${old.data?.k}→${next.data?.k}`),
    deleted: ({ metadata }) => void notified.push(`-${metadata.name}`),
  })
  const closing = new AbortController()
  const running = cache.run(closing.signal)
  stops.push(async () => {
    closing.abort()
    await running
    await fixture.store.close()
  })
  return { fixture, clock, real, client, cache, notified, closing, store: fixture.store }
}

/** Advances the clock until the condition holds, at most as long as reconnecting takes. */
async function until(clock: ManualClock, condition: () => boolean, withinMs = 120_000): Promise<void> {
  for (let waitedMs = 0; !condition(); waitedMs += 100) {
    if (waitedMs > withinMs) throw new Error(`did not happen within ${withinMs} ms of simulated time`)
    await clock.advance(100)
    for (let i = 0; i < 5; i++) await turn()
  }
}

const shows = (cache: Cache<any>) =>
  Object.fromEntries(cache.list().map(({ metadata, data }) => [metadata.name, data?.k ?? '']))

describe('a cache', () => {
  it('holds the list, follows every change, and passes the old object to subscribers', async () => {
    const { clock, real, cache, notified } = await aCache()
    await real.create(configMapKind, map('a'))
    await until(clock, () => cache.synced && cache.size === 1)
    await real.patch(configMapKind, ref('a'), set('1'))
    await real.create(configMapKind, map('b'))
    await real.delete(configMapKind, ref('a'))
    await until(clock, () => notified.length === 4)
    expect(notified).toEqual(['+a=0', '~a=0→1', '+b=0', '-a'])
    expect(cache.get('default/b')?.data).toEqual({ k: '0' })
    expect(cache.get(ref('a'))).toBeUndefined()
    expect(cache.list('default').map(({ metadata }) => metadata.name)).toEqual(['b'])
    expect(cache.list('shop')).toEqual([])
  })

  it('shares the objects of an in-process server without copying them', async () => {
    const { clock, real, cache } = await aCache()
    const created = await real.create(configMapKind, map('a'))
    await until(clock, () => cache.size === 1)
    const cached = cache.get(ref('a'))!
    expect(cached.data).toBe(created.data)
    expect(Object.isFrozen(cached)).toBe(true)
    expect(cached.metadata.managedFields).toBeUndefined()
  })

  it('applies its own write once, before the watch delivers it, and only to objects it holds', async () => {
    const { clock, real, cache, notified } = await aCache()
    await real.create(configMapKind, map('a'))
    await until(clock, () => cache.size === 1)
    const written = await real.patch(configMapKind, ref('a'), set('1'))
    cache.learn(written)
    expect(shows(cache)).toEqual({ a: '1' })
    const gone = await real.create(configMapKind, map('gone'))
    await real.delete(configMapKind, ref('gone'))
    cache.learn(gone)
    await real.patch(configMapKind, ref('a'), set('2'))
    await until(clock, () => notified.includes('~a=1→2'))
    cache.learn(written) // late: the cache has a newer version
    expect(shows(cache)).toEqual({ a: '2' })
    expect(notified.filter((line) => line.includes('a='))).toEqual(['+a=0', '~a=0→1', '~a=1→2'])
  })

  it('looks up by index, including objects from before the index and changed values', async () => {
    const { clock, real, cache } = await aCache()
    await real.create(configMapKind, map('a', 'red'))
    await until(clock, () => cache.size === 1)
    cache.addIndex('k', ({ data }) => (data?.k ? [data.k] : []))
    const named = (key: string) => cache.byIndex('k', key).map(({ metadata }) => metadata.name)
    expect(named('red')).toEqual(['a'])
    await real.create(configMapKind, map('b', 'red'))
    await real.patch(configMapKind, ref('a'), set('blue'))
    await until(clock, () => named('blue').length === 1)
    expect(named('red')).toEqual(['b'])
    await real.delete(configMapKind, ref('a'))
    await until(clock, () => cache.size === 1)
    expect(named('blue')).toEqual([])
    expect(() => cache.byIndex('nope', 'x')).toThrow('There is no index named "nope"')
  })

  it('resolves whenSeen once its own write has arrived', async () => {
    const { clock, real, cache, closing } = await aCache()
    await until(clock, () => cache.synced)
    const { metadata } = await real.create(configMapKind, map('a'))
    expect(await cache.whenSeen(metadata.resourceVersion!, closing.signal)).toBe(true)
    expect(cache.get(ref('a'))).toBeDefined()
    const never = cache.whenSeen('999999', closing.signal)
    closing.abort()
    expect(await never).toBe(false)
  })

  it('calls the other subscribers when one throws', async () => {
    const { clock, real, cache, notified } = await aCache()
    cache.subscribe({
      added: () => {
        throw new Error('mine')
      },
    })
    await real.create(configMapKind, map('a'))
    await until(clock, () => notified.length === 1)
    await real.create(configMapKind, map('b'))
    await until(clock, () => notified.length === 2)
  })
})

describe('a cache whose connection breaks', () => {
  it('resumes from the last version without a list and without repeating an event', async () => {
    const { clock, real, client, cache, notified } = await aCache()
    await until(clock, () => cache.synced)
    for (let round = 0; round < 5; round++) {
      client.cut(round % 2 ? broken : undefined)
      await real.create(configMapKind, map(`m${round}`))
      await until(clock, () => cache.size === round + 1)
    }
    expect(notified).toEqual([0, 1, 2, 3, 4].map((round) => `+m${round}=0`))
    expect(client.watches.filter(({ sendInitialEvents }) => sendInitialEvents).length).toBe(1)
    expect(client.lists).toBe(0)
  })

  it('delivers all changes of one version when the stream breaks between them', async () => {
    const { clock, real, client, cache, notified, store } = await aCache()
    await real.create(configMapKind, map('a'))
    await real.create(configMapKind, map('b'))
    await until(clock, () => cache.size === 2)
    const stop = cache.subscribe({ deleted: () => client.cut(broken) }) // right after the first of the two
    // Clients cannot do this, but a store does when several objects expire together.
    await store.transact(() => ['a', 'b'].map((name) => ({ delete: `core/configmaps/default/${name}` })))
    await until(clock, () => cache.size === 0)
    stop()
    expect(notified).toEqual(['+a=0', '+b=0', '-a', '-b'])
  })

  it('finds an object deleted while disconnected after its history is compacted', async () => {
    const { clock, real, client, cache, notified } = await aCache({ entriesMax: 20 })
    await real.create(configMapKind, map('gone'))
    await real.create(configMapKind, map('kept'))
    await real.create(configMapKind, map('replaced'))
    await until(clock, () => cache.size === 3)
    client.watchError = broken
    client.cut(broken)
    await real.delete(configMapKind, ref('gone'))
    await real.delete(configMapKind, ref('replaced'))
    await real.create(configMapKind, map('replaced', 'new'))
    for (let i = 1; i <= 50; i++) await real.patch(configMapKind, ref('kept'), set(String(i)))
    notified.length = 0
    client.watchError = undefined
    await until(clock, () => cache.get(ref('kept'))?.data?.k === '50')
    expect(notified.toSorted()).toEqual(['+replaced=new', '-gone', '-replaced', '~kept=0→50'])
    expect(cache.stats()).toMatchObject({ relists: 2, foundByRelist: 3 })
  })

  it('replaces a silent stream and reports the age of its last event', async () => {
    const { clock, real, client, cache } = await aCache()
    await until(clock, () => cache.synced)
    client.silence()
    await real.create(configMapKind, map('a'))
    await clock.advance(200_000)
    expect(cache.size).toBe(0)
    expect(cache.lastEventAgeMs()).toBeGreaterThanOrEqual(199_000)
    await until(clock, () => cache.size === 1, 600_000)
    expect(cache.lastEventAgeMs()).toBeLessThan(1_000)
  })

  it.each([
    ['503', broken],
    ['429', new ApiError(429, 'TooManyRequests', 'slow down')],
    ['410', new ApiError(410, 'Expired', 'too old')],
    ['403', new ApiError(403, 'Forbidden', 'no')],
  ])(
    'does not storm a server that answers %s: at most a try a second, then every half minute',
    async (_code, error) => {
      const { clock, client, cache } = await aCache()
      await until(clock, () => cache.synced)
      client.watchError = error
      client.listError = error
      client.cut(broken)
      const before = client.watches.length + client.lists
      await clock.advance(600_000)
      const tries = client.watches.length + client.lists - before
      expect(tries).toBeGreaterThan(15)
      expect(tries).toBeLessThan(60)
    },
  )

  it('backs off from a server that ends every stream at once', async () => {
    const { clock, client, cache } = await aCache()
    await until(clock, () => cache.synced)
    const before = client.watches.length
    for (let i = 0; i < 600; i++) {
      client.cut()
      await clock.advance(1_000)
    }
    expect(client.watches.length - before).toBeLessThan(60)
  })

  it('reconnects no earlier than Retry-After', async () => {
    const { clock, client, cache } = await aCache()
    await until(clock, () => cache.synced)
    client.watchError = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 60 })
    client.cut(broken)
    await until(clock, () => client.watches.length === 2)
    await clock.advance(59_000)
    expect(client.watches.length).toBe(2)
    await clock.advance(2_000)
    expect(client.watches.length).toBe(3)
  })

  it('spreads the reconnects of caches that failed together', async () => {
    const times = new Set<number>()
    for (const chance of [0, 0.3, 0.6, 0.9]) {
      const { clock, client, cache } = await aCache({ random: () => chance })
      await until(clock, () => cache.synced)
      client.cut(broken)
      const start = clock.nowMs()
      await until(clock, () => client.watches.length === 2)
      times.add(clock.nowMs() - start)
    }
    expect(times.size).toBe(4)
  })

  it.each(['ignored', 'refused', 'broken'] as const)('lists where WatchList is %s', async (watchList) => {
    const { clock, real, client, cache, notified } = await aCache({ watchList })
    for (const name of ['a', 'b']) await real.create(configMapKind, map(name))
    await until(clock, () => cache.size === 2)
    await real.delete(configMapKind, ref('a'))
    await until(clock, () => notified.length === 3)
    expect(notified).toEqual(['+a=0', '+b=0', '-a'])
    expect(client.lists).toBe(1)
  })

  it('leaves no stream, watcher or listener behind after a thousand reconnects', async () => {
    const { clock, fixture, real, client, cache, closing } = await aCache()
    await until(clock, () => cache.synced)
    const listeners = countListeners(closing.signal)
    const watchers = fixture.store.stats().watchers
    for (let round = 0; round < 1_000; round++) {
      client.cut(round % 3 ? broken : undefined)
      await clock.advance(70_000)
      for (let i = 0; client.streams === 0 && i < 20; i++) await turn()
    }
    expect(client.watches.length).toBeGreaterThan(1_000)
    expect(client.streams).toBe(1)
    expect(countListeners(closing.signal)).toBe(listeners)
    expect(fixture.store.stats().watchers).toBe(watchers)
    await real.create(configMapKind, map('still-alive'))
    await until(clock, () => cache.size === 1)
  })

  it('follows a server that was restarted on the same disk, and on an empty one', async () => {
    const medium = memoryMedium()
    const first = await createServerFixture({ medium })
    const real = () => inProcessClient(current.server.objects, SYSTEM_USER)
    let current = first
    const own = manualClock()
    const clock = {
      ...own,
      advance: async (ms: number) => void (await Promise.all([own.advance(ms), current.clock.advance(ms)])),
    }
    const client = flakyClient({ ...real(), watch: (...args) => real().watch(...args) })
    const cache = createCache({ client, kind: configMapKind, clock, random: () => 0.5 })
    const closing = new AbortController()
    const running = cache.run(closing.signal)
    for (const name of ['a', 'b', 'c']) await real().create(configMapKind, map(name))
    await until(clock, () => cache.size === 3)

    await first.store.close()
    current = await createServerFixture({ medium })
    await real().delete(configMapKind, ref('b'))
    await until(clock, () => cache.size === 2)

    await current.store.close()
    current = await createServerFixture() // an empty disk: resourceVersions restart, far below those seen
    await real().create(configMapKind, map('z'))
    await until(clock, () => cache.size === 1 && cache.get(ref('z')) !== undefined, 600_000)
    closing.abort()
    await running
  })

  it('SYS-3 converges to the server state under any failures, without going back or repeating a change', async () => {
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
      { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('cut', 'break', 'silence', 'refuse', 'allow') }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 5_000 }) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), fc.boolean(), async (actions, refused) => {
        const { clock, real, client, cache } = await aCache({
          entriesMax: 30,
          watchList: refused ? 'refused' : 'served',
        })
        const known = new Map<string, { uid: string; version: number }>()
        const note = ({ metadata }: any, is: 'added' | 'updated') => {
          const before = known.get(metadata.name)
          expect(is === 'added' ? before === undefined : before?.uid === metadata.uid).toBe(true)
          if (before) expect(Number(metadata.resourceVersion)).toBeGreaterThan(before.version)
          known.set(metadata.name, { uid: metadata.uid, version: Number(metadata.resourceVersion) })
        }
        cache.subscribe({
          added: (object) => note(object, 'added'),
          updated: (next) => note(next, 'updated'),
          deleted: ({ metadata }) => expect(known.delete(metadata.name!)).toBe(true),
        })
        let k = 0
        const write = async (name: string) => {
          const patched = await real.patch(configMapKind, ref(name), set(String(++k))).catch(() => undefined)
          if (!patched) await real.create(configMapKind, map(name, String(k)))
        }
        for (const one of actions) {
          if (one.do === 'write') await write(one.name)
          else if (one.do === 'delete') await real.delete(configMapKind, ref(one.name)).catch(() => {})
          else if (one.do === 'commit') {
            const patches = cache.list().map(({ metadata }) => ({
              do: 'patch' as const,
              kind: configMapKind,
              ref: ref(metadata.name!),
              patch: set(String(++k)),
            }))
            await Promise.all(patches.map((one) => real.commit([one]).catch(() => {})))
          } else if (one.do === 'cut') client.cut()
          else if (one.do === 'break') client.cut(broken)
          else if (one.do === 'silence') client.silence()
          else if (one.do === 'refuse') client.watchError = broken
          else if (one.do === 'allow') client.watchError = undefined
          else if (one.do === 'forget') for (let i = 0; i < 40; i++) await write('noise')
          else if (one.do === 'wait') await clock.advance(one.ms)
        }
        client.watchError = undefined
        const { items } = await real.list(configMapKind)
        const truth = Object.fromEntries(items.map(({ metadata, data }) => [metadata.name, data?.k ?? '']))
        await until(
          clock,
          () =>
            JSON.stringify(shows(cache), sorted(truth)) === JSON.stringify(truth, sorted(truth)) &&
            cache.size === items.length,
          900_000,
        )
        expect([...known.keys()].toSorted()).toEqual(Object.keys(truth).toSorted())
        for (const stop of stops.splice(0)) await stop()
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})

const sorted = (object: object) => Object.keys(object).toSorted()

/** How many listeners an AbortSignal has, by Node's own count. */
function countListeners(signal: AbortSignal): number {
  const counts = Object.getOwnPropertySymbols(signal).filter((symbol) => symbol.description === 'kEvents')
  const events = (signal as any)[counts[0]!] as Map<string, { size: number }> | undefined
  return events?.get('abort')?.size ?? 0
}
