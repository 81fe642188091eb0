// The contract tests of the Store interface, which every implementation runs in its test file: `storeContract(createStorage)`.
// createStorage() prepares empty storage and returns a function that opens a store on it, possibly several times.
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../base/clock.ts'
import { manualClock } from '../base/manual-clock.ts'
import {
  CompactedError,
  FutureRevisionError,
  type HistoryOptions,
  type Revision,
  type Store,
  StoreClosedError,
  type StoreEvent,
  type Write,
} from './store.ts'
import { createModel, expectModel, type HistoryModel, type WriteText } from './testing/model.ts'
import {
  advanceUntil,
  bytes,
  collectEvents,
  formatEvent,
  put,
  remove,
  text,
  waitUntil,
} from './testing/store.fixture.ts'

export type OpenStore = (options: { clock: Clock; history?: HistoryOptions }) => Promise<Store>

export interface ContractOptions {
  /** Number of random histories in the model test. Default: 50. */
  readonly runs?: number
  /** Whether transactions of the same tick commit in the order of their calls. Default: true. */
  readonly isOrdered?: boolean
  /** Whether compacted `brief` history stays compacted when the store is reopened. Default: true. */
  readonly persistsBriefCompaction?: boolean
}

export function storeContract(
  createStorage: () => Promise<OpenStore>,
  { runs = 50, isOrdered = true, persistsBriefCompaction = true }: ContractOptions = {},
): void {
  const openedStores: Store[] = []
  afterEach(async () => {
    await Promise.all(openedStores.splice(0).map((store) => store.close()))
  })

  /** Opens a store on empty storage. Returns it with its clock and a function that reopens it. */
  async function setUp(history?: HistoryOptions) {
    const clock = manualClock()
    const openStore = await createStorage()
    const reopen = async (otherHistory = history) => {
      const store = await openStore({ clock, history: otherHistory })
      openedStores.push(store)
      return store
    }
    return { clock, reopen, store: await reopen() }
  }

  describe('reading and writing', () => {
    it('returns the value, the creation revision and the modification revision', async () => {
      const { store } = await setUp()
      expect(store.revision).toBe(0)
      expect(await put(store, 'a', 'one')).toBe(1)
      expect(await put(store, 'a', 'two')).toBe(2)
      const entry = await store.get('a')
      expect(text(entry)).toBe('two')
      expect(entry).toMatchObject({ key: 'a', createRevision: 1, modRevision: 2 })
      expect(await store.get('b')).toBeUndefined()
    })

    it('stores empty and very large values', async () => {
      const { store, reopen } = await setUp()
      const largeValue = Buffer.alloc(20 * 1024 * 1024, 'large')
      await store.transact(() => [
        { put: 'empty', value: new Uint8Array(0) },
        { put: 'large', value: largeValue },
      ])
      expect((await store.get('empty'))?.value).toHaveLength(0)
      expect(Buffer.compare((await store.get('large'))?.value as Uint8Array, largeValue)).toBe(0)
      await store.close()
      const reopenedStore = await reopen()
      expect((await reopenedStore.get('empty'))?.value).toHaveLength(0)
      expect(Buffer.compare((await reopenedStore.get('large'))?.value as Uint8Array, largeValue)).toBe(0)
    })

    it('SYS-3 assigns a revision to every write of a transaction, in order, and returns the revisions', async () => {
      const { store, reopen } = await setUp()
      await put(store, 'c')
      const { revision, revisions } = await store.transact(() => [
        { put: 'b', value: bytes('1') },
        { delete: 'unknown' },
        { delete: 'c' },
        { put: 'a', value: bytes('2') },
      ])
      expect([revision, revisions]).toEqual([4, [2, 0, 3, 4]])
      await store.close()
      const reopenedStore = await reopen()
      expect(reopenedStore.revision).toBe(4)
      expect(await reopenedStore.get('b')).toMatchObject({ modRevision: 2, createRevision: 2 })
      expect(await reopenedStore.get('a')).toMatchObject({ modRevision: 4, createRevision: 4 })
      const { events } = collectEvents(reopenedStore, { afterRevision: 1 })
      await waitUntil(() => events.length === 3)
      expect(events.map(formatEvent)).toEqual(['put b@2=1', 'delete c@3<c', 'put a@4=2'])
    })

    it('SYS-1 makes the writes of a transaction visible together, except for reads at a revision between them', async () => {
      const { store } = await setUp()
      const states = new Set<string>()
      const stateAt = async (atRevision?: Revision) =>
        (await store.list({ prefix: 'k/', atRevision })).entries.map((entry) => text(entry)).join('')
      const readState = async () => void states.add(await stateAt())
      const write = (value: string) =>
        store.transact(() => ['k/1', 'k/2', 'k/3'].map((key) => ({ put: key, value: bytes(value) })))
      await Promise.all(['a', 'b', 'c'].flatMap((value) => [readState(), write(value), readState()]))
      await readState()
      for (const state of states) expect(['', 'aaa', 'bbb', 'ccc']).toContain(state)
      expect(states.size).toBeGreaterThan(1)
      expect(new Set(await stateAt(store.revision - 1)).size).toBe(2)
    })

    it('SYS-3 lets a watcher resume between two writes of a transaction', async () => {
      const { store } = await setUp()
      await store.transact(() => ['a', 'b', 'c'].map((key) => ({ put: key, value: bytes(key) })))
      for (const [afterRevision, expectedKeys] of [
        [0, 'abc'],
        [1, 'bc'],
        [2, 'c'],
      ] as const) {
        const { events } = collectEvents(store, { afterRevision })
        await waitUntil(() => events.length >= expectedKeys.length)
        expect(events.map(({ key }) => key).join('')).toBe(expectedKeys)
      }
    })

    it('recreates a deleted key with a new creation revision', async () => {
      const { store } = await setUp()
      await put(store, 'a')
      expect(await remove(store, 'a')).toBe(2)
      expect(await store.get('a')).toBeUndefined()
      await put(store, 'a')
      expect(await store.get('a')).toMatchObject({ createRevision: 3, modRevision: 3 })
    })

    it('creates no revision for a transaction without writes', async () => {
      const { store } = await setUp()
      await put(store, 'a')
      expect(await store.transact(() => [])).toEqual({ revision: 1, revisions: [] })
      expect(await store.transact(() => [{ delete: 'unknown' }])).toEqual({ revision: 1, revisions: [0] })
      expect(store.revision).toBe(1)
    })

    it.each<[string, Write[]]>([
      ['a key written twice', [{ put: 'k', value: bytes('') }, { delete: 'k' }]],
      ['an empty key', [{ put: 'k', value: bytes('') }, { delete: '' }]],
      ['a key that is too long', [{ put: 'k'.repeat(5_000), value: bytes('') }]],
      ['a key that is not well-formed Unicode', [{ put: 'k\ud800', value: bytes('') }]],
    ])('rejects a transaction with %s', async (_, writes) => {
      const { store } = await setUp()
      await expect(store.transact(() => writes)).rejects.toThrow(/key/)
      expect(store.revision).toBe(0)
      expect(await store.get('k')).toBeUndefined()
    })

    it('runs every transaction on the result of the previous one', async () => {
      const { store } = await setUp()
      const increment = () =>
        store.transact((view) => [{ put: 'n', value: bytes(String(Number(text(view.get('n')) ?? 0) + 1)) }])
      const results = await Promise.all(Array.from({ length: 2_500 }, increment))
      expect(text(await store.get('n'))).toBe('2500')
      expect(results.map(({ revision }) => revision)).toEqual(Array.from({ length: 2_500 }, (_, index) => index + 1))
    })

    it('lists the existing keys below a prefix inside a transaction, in key order', async () => {
      const { store } = await setUp()
      for (const key of ['k/b', 'k/a', 'l/a', 'k/c', 'kk/a']) await put(store, key)
      await remove(store, 'k/c')
      let listedKeys: string[] = []
      await store.transact((view) => {
        listedKeys = view.list('k/').map(({ key }) => key)
        return []
      })
      expect(listedKeys).toEqual(['k/a', 'k/b'])
    })

    it.runIf(isOrdered)('lists keys inside a transaction after creates and deletes of the same tick', async () => {
      const { store } = await setUp()
      await put(store, 'k/a')
      const lists: string[][] = []
      const listKeys = () =>
        store.transact((view) => {
          lists.push(view.list('k/').map(({ key }) => key))
          return []
        })
      await Promise.all([
        listKeys(),
        put(store, 'k/0'),
        listKeys(),
        remove(store, 'k/a'),
        put(store, 'l/a'),
        listKeys(),
      ])
      expect(lists).toEqual([['k/a'], ['k/0', 'k/a'], ['k/0']])
    })

    it('reads a key inside a transaction after a delete and a put of the same tick', async () => {
      const { store } = await setUp()
      await put(store, 'a')
      const readValue = async () => {
        let observedValue: string | undefined
        const { revision } = await store.transact((view) => {
          observedValue = text(view.get('a')) // the store may call this several times; the last call counts
          return []
        })
        return { observed: observedValue, revision }
      }
      const [firstRead, , secondRead, , thirdRead] = await Promise.all([
        readValue(),
        remove(store, 'a'),
        readValue(),
        put(store, 'a', 'new'),
        readValue(),
      ])
      const states = [undefined, 'a', undefined, 'new']
      for (const { observed: observedValue, revision } of [firstRead, secondRead, thirdRead])
        expect(observedValue).toBe(states[revision])
      if (isOrdered) expect([firstRead, secondRead, thirdRead].map(({ revision }) => revision)).toEqual([1, 2, 3])
    })

    it('rejects only the transaction whose function throws', async () => {
      const { store } = await setUp()
      const results = await Promise.allSettled([
        put(store, 'a'),
        store.transact(() => {
          throw new Error('rejected by the test')
        }),
        put(store, 'b'),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(results[1]).toMatchObject({ reason: { message: 'rejected by the test' } })
      expect(store.revision).toBe(2)
    })

    it('SYS-1 keeps keys, history and revisions when the store is reopened', async () => {
      const { store, reopen } = await setUp()
      await put(store, 'a', 'one')
      await put(store, 'a', 'two')
      await put(store, 'b')
      await remove(store, 'b')
      await store.close()

      const reopenedStore = await reopen()
      expect(reopenedStore.revision).toBe(4)
      expect(text(await reopenedStore.get('a'))).toBe('two')
      expect(await reopenedStore.get('a')).toMatchObject({ createRevision: 1, modRevision: 2 })
      expect(await reopenedStore.get('b')).toBeUndefined()
      expect(text((await reopenedStore.list({ prefix: '', atRevision: 3 })).entries[1])).toBe('b')
      expect(await put(reopenedStore, 'c')).toBe(5)
    })
  })

  describe('listing', () => {
    const keysOf = async (store: Store, options: Parameters<Store['list']>[0]) =>
      (await store.list(options)).entries.map(({ key }) => key)

    it('returns the keys under a prefix in key order', async () => {
      const { store } = await setUp()
      for (const key of ['b/2', 'a/1', 'b/10', 'c/1', 'b/1', 'b']) await put(store, key)
      await remove(store, 'b/10')
      expect(await keysOf(store, { prefix: 'b/' })).toEqual(['b/1', 'b/2'])
      expect(await keysOf(store, { prefix: '' })).toEqual(['a/1', 'b', 'b/1', 'b/2', 'c/1'])
      expect(await keysOf(store, { prefix: 'd' })).toEqual([])
    })

    it('returns pages with the number of remaining entries', async () => {
      const { store } = await setUp()
      await Promise.all(Array.from({ length: 1_234 }, (_, index) => put(store, `k/${String(index).padStart(4, '0')}`)))
      await Promise.all([put(store, 'j'), put(store, 'l')])
      expect(await store.list({ prefix: 'k/', limit: 1_000 })).toMatchObject({ hasMore: true, remainingCount: 234 })
      expect(await store.list({ prefix: 'k/', afterKey: 'k/0999', limit: 234 })).toMatchObject({
        hasMore: false,
        remainingCount: 0,
      })
      expect(await keysOf(store, { prefix: 'k/', afterKey: 'k/1231', limit: 5 })).toEqual(['k/1232', 'k/1233'])
      expect(await store.list({ prefix: 'k/', limit: 0 })).toMatchObject({
        entries: [],
        hasMore: true,
        remainingCount: 1_234,
      })
    })

    it('returns the state at an old revision', async () => {
      const { store } = await setUp()
      await put(store, 'a', '1')
      await put(store, 'b', '2')
      await put(store, 'a', '3')
      await remove(store, 'b')
      const stateAt = async (atRevision: Revision) =>
        (await store.list({ prefix: '', atRevision })).entries.map((entry) => `${entry.key}=${text(entry)}`)
      expect(await stateAt(0)).toEqual([])
      expect(await stateAt(1)).toEqual(['a=1'])
      expect(await stateAt(2)).toEqual(['a=1', 'b=2'])
      expect(await stateAt(3)).toEqual(['a=3', 'b=2'])
      expect(await stateAt(4)).toEqual(['a=3'])
      await expect(stateAt(5)).rejects.toThrow(FutureRevisionError)
    })

    it('pages through one revision during concurrent writes', async () => {
      const { store } = await setUp()
      for (let index = 0; index < 20; index++) await put(store, `k/${index}`, 'before')
      const firstPage = await store.list({ prefix: 'k/', limit: 7 })
      const entries = [...firstPage.entries]
      for (let page = firstPage; page.hasMore; ) {
        await put(store, `k/new-${entries.length}`, 'after')
        for (let index = 0; index < 20; index += 3) await put(store, `k/${index}`, 'after')
        await remove(store, 'k/9')
        page = await store.list({
          prefix: 'k/',
          limit: 7,
          afterKey: entries.at(-1)?.key,
          atRevision: firstPage.revision,
        })
        entries.push(...page.entries)
        expect(page.remainingCount).toBe(20 - entries.length)
      }
      expect(entries).toHaveLength(20)
      expect(new Set(entries.map(text))).toEqual(new Set(['before']))
    })

    it('returns one revision despite concurrent writes and compaction', async () => {
      const { clock, store } = await setUp({ keepMs: 0, entriesMax: 0 })
      const keys = Array.from({ length: 5_000 }, (_, index) => `k/${index}`)
      await Promise.all(keys.map((key) => put(store, key, 'before')))
      const pendingList = store.list({ prefix: 'k/' })
      await Promise.all(keys.map((key) => put(store, key, 'after')))
      const { entries, revision } = await pendingList
      expect(entries).toHaveLength(5_000)
      expect(entries.filter((entry) => text(entry) === 'after')).toHaveLength(revision - 5_000)
      if (isOrdered) expect(revision).toBe(5_000)
      await advanceUntil(clock, () => store.stats().historyEntries === 0)
    })
  })

  describe('watching', () => {
    it('SYS-3 replays the changes after a revision and continues with new ones', async () => {
      const { store } = await setUp()
      await put(store, 'a', '1')
      await put(store, 'a', '2')
      await put(store, 'b', '3')
      await remove(store, 'a')
      const { events, watch } = collectEvents(store, { afterRevision: 1 })
      expect(events).toEqual([])
      await put(store, 'a', '5')
      await put(store, 'a', '6')
      await waitUntil(() => watch.revision === 6)
      expect(events.map(formatEvent)).toEqual(['put a@2=2<1', 'put b@3=3', 'delete a@4<2', 'put a@5=5', 'put a@6=6<5'])
    })

    it('SYS-3 replays the same changes after the store is reopened', async () => {
      const { store, reopen } = await setUp()
      await put(store, 'a', '1')
      await put(store, 'a', '2')
      await remove(store, 'a')
      await store.close()
      const reopenedStore = await reopen()
      const { events, watch } = collectEvents(reopenedStore, { afterRevision: 0 })
      await waitUntil(() => watch.revision === 3)
      expect(events.map(formatEvent)).toEqual(['put a@1=1', 'put a@2=2<1', 'delete a@3<2'])
    })

    it('delivers a transaction in one call, in write order', async () => {
      const { store } = await setUp()
      const calls: string[][] = []
      const options = {
        prefix: '',
        onEvents: (events: readonly StoreEvent[]) => void calls.push(events.map(formatEvent)),
        onEnd: () => {},
      }
      store.watch({ ...options, afterRevision: 0 })
      await store.transact(() => ['z', 'a', 'm'].map((key) => ({ put: key, value: bytes('') })))
      await waitUntil(() => calls.length > 0)
      store.watch({ ...options, afterRevision: 0 })
      await waitUntil(() => calls.length > 1)
      expect(calls).toEqual([
        ['put z@1=', 'put a@2=', 'put m@3='],
        ['put z@1=', 'put a@2=', 'put m@3='],
      ])
    })

    it('SYS-3 replays large transactions in several calls, without gaps or duplicates', async () => {
      const { store } = await setUp()
      for (let index = 0; index < 5; index++) {
        await store.transact(() => Array.from({ length: 300 }, (_, n) => ({ put: `k/${n}`, value: bytes('') })))
      }
      const calls: Revision[][] = []
      const onEvents = (events: readonly StoreEvent[]) => void calls.push(events.map(({ revision }) => revision))
      const watch = store.watch({ prefix: '', afterRevision: 0, onEvents, onEnd: () => {} })
      await waitUntil(() => watch.revision === 1_500)
      expect(calls.length).toBeGreaterThan(1)
      expect(calls.flat()).toEqual(Array.from({ length: 1_500 }, (_, index) => index + 1))
    })

    it('delivers only changes under the prefix, and advances its revision for all changes', async () => {
      const { store } = await setUp()
      await put(store, 'b/0')
      const { events, watch } = collectEvents(store, { prefix: 'a/', afterRevision: 0 })
      await waitUntil(() => watch.revision === 1)
      await put(store, 'a/1')
      await put(store, 'ab')
      await put(store, 'b/1')
      await waitUntil(() => watch.revision === 4)
      expect(events.map(formatEvent)).toEqual(['put a/1@2=a/1'])
    })

    it('delivers the same event object to every watcher, live or replaying', async () => {
      const { store } = await setUp()
      const watchers = ['', 'a', 'a/1', ''].map((prefix) => collectEvents(store, { prefix }))
      await put(store, 'a/1')
      watchers.push(collectEvents(store, { prefix: 'a/', afterRevision: 0 }))
      await waitUntil(() => watchers.every(({ events }) => events.length === 1))
      expect(new Set(watchers.map(({ events }) => events[0])).size).toBe(1)
    })

    it('delivers no events before watch() has returned or after close()', async () => {
      const { store } = await setUp()
      await put(store, 'a')
      const replayingWatcher = collectEvents(store, { afterRevision: 0 })
      expect(replayingWatcher.events).toEqual([])
      replayingWatcher.watch.close()
      const liveWatcher = collectEvents(store)
      const pendingPut = put(store, 'b')
      liveWatcher.watch.close()
      await pendingPut
      await put(store, 'c')
      const fullWatcher = collectEvents(store, { afterRevision: 0 })
      await waitUntil(() => fullWatcher.events.length === 3)
      expect([...replayingWatcher.events, ...liveWatcher.events]).toEqual([])
      expect(store.stats().watchers).toBe(1)
    })

    it('allows watchers to be added and closed during delivery', async () => {
      const { store } = await setUp()
      const lateEvents: StoreEvent[] = []
      const closedWatcher = { callCount: 0, close: () => {} }
      store.watch({
        prefix: '',
        afterRevision: 0,
        onEvents: () => {
          closedWatcher.close()
          const afterRevision = store.revision
          store.watch({
            prefix: '',
            afterRevision,
            onEvents: (events) => void lateEvents.push(...events),
            onEnd: () => {},
          })
        },
        onEnd: () => {},
      })
      const onEvents = () => void closedWatcher.callCount++
      const watch = store.watch({ prefix: '', afterRevision: 0, onEvents, onEnd: () => {} })
      closedWatcher.close = () => watch.close()
      await put(store, 'a')
      await put(store, 'b')
      expect(lateEvents.map(formatEvent)).toEqual(['put b@2=b'])
      expect(closedWatcher.callCount).toBe(0)
    })

    it('ends only the watcher whose callback throws', async () => {
      const { store } = await setUp()
      const ends: Error[] = []
      const onEvents = () => {
        throw new Error('oops')
      }
      store.watch({ prefix: '', afterRevision: 0, onEvents, onEnd: (reason) => void ends.push(reason) })
      const otherWatcher = collectEvents(store)
      await put(store, 'a')
      await put(store, 'b')
      expect(ends).toHaveLength(1)
      expect(ends[0]?.cause).toMatchObject({ message: 'oops' })
      expect(otherWatcher.events).toHaveLength(2)
    })

    it('throws FutureRevisionError for a revision that does not exist yet', async () => {
      const { store } = await setUp()
      expect(() => collectEvents(store, { afterRevision: 1 })).toThrow(FutureRevisionError)
    })

    it('SYS-3 delivers every event once and in order to a watcher that reconnects at random', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.infiniteStream(fc.nat({ max: 99 })),
          fc.integer({ min: 1, max: 40 }),
          async (chance, writers) => {
            const roll = () => chance.next().value as number
            const { store } = await setUp()
            const fullWatcher = collectEvents(store)
            const observed: StoreEvent[] = []
            let reconnects = 0
            let isConnected = false
            let watch = { close: () => {} }
            const connect = (afterRevision: Revision) => {
              isConnected = true
              watch = store.watch({
                prefix: 'k/',
                afterRevision,
                onEvents: (events) => {
                  observed.push(...events)
                  if (roll() < 40 && reconnects++ < 200) {
                    watch.close()
                    isConnected = false
                    const resumeAfter = events.at(-1)?.revision ?? 0
                    setImmediate(() => connect(resumeAfter))
                  }
                },
                onEnd: () => {},
              })
            }
            connect(0)
            const write = async () => {
              for (let n = 0; n < 10; n++) {
                const writes = [...new Set([roll() % 7, roll() % 7])].map((key): Write => {
                  const prefix = roll() < 20 ? 'other/' : 'k/'
                  return roll() < 30
                    ? { delete: `${prefix}${key}` }
                    : { put: `${prefix}${key}`, value: bytes(String(roll())) }
                })
                await store.transact(() => writes)
              }
            }
            await Promise.all(Array.from({ length: writers }, write))
            const expectedEvents = fullWatcher.events.filter(({ key }) => key.startsWith('k/')).map(formatEvent)
            await waitUntil(() => isConnected && observed.length >= expectedEvents.length)
            expect(observed.map(formatEvent)).toEqual(expectedEvents)
            await store.close()
          },
        ),
        { numRuns: Math.ceil(runs / 5) },
      )
    })
  })

  describe('history', () => {
    it('SYS-3 is kept for keepMs and then compacted', async () => {
      const { clock, store } = await setUp({ keepMs: 60_000 })
      await put(store, 'a', '1')
      await put(store, 'a', '2')
      await clock.advance(59_000)
      expect(text((await store.list({ prefix: '', atRevision: 1 })).entries[0])).toBe('1')

      await advanceUntil(clock, () => store.stats().historyEntries === 0)
      expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000)
      expect(store.stats()).toMatchObject({ keys: 1, compactedRevision: 2 })
      await expect(store.list({ prefix: '', atRevision: 1 })).rejects.toThrow(CompactedError)
      expect(() => collectEvents(store, { afterRevision: 1 })).toThrow(CompactedError)
      expect(text((await store.list({ prefix: '', atRevision: 2 })).entries[0])).toBe('2')
      expect(collectEvents(store, { afterRevision: 2 }).watch.revision).toBe(2)
    })

    it('is compacted beyond entriesMax, oldest first, regardless of its age', async () => {
      const { clock, store } = await setUp({ entriesMax: 10 })
      for (let index = 1; index <= 30; index++) await put(store, 'a', String(index))
      await advanceUntil(clock, () => store.stats().historyEntries <= 10)
      expect(store.stats().historyEntries).toBe(10)
      expect(store.stats().compactedRevision).toBe(20)
      expect(text((await store.list({ prefix: '', atRevision: 20 })).entries[0])).toBe('20')
      await expect(store.list({ prefix: '', atRevision: 19 })).rejects.toThrow(CompactedError)
    })

    it('SYS-19 is compacted beyond bytesMax, oldest first, regardless of its age', async () => {
      const { clock, store } = await setUp({ bytesMax: 1_000 })
      for (let index = 1; index <= 30; index++) await put(store, 'a', String(index).padStart(100, '0'))
      await advanceUntil(clock, () => store.stats().historyBytes <= 1_000)
      expect(store.stats()).toMatchObject({ historyEntries: 10, historyBytes: 1_000, compactedRevision: 20 })
      await expect(store.list({ prefix: '', atRevision: 19 })).rejects.toThrow(CompactedError)
    })

    it('is shorter for brief prefixes, and for prefixes that include them', async () => {
      const brief = { prefixes: ['lease/', 'event/'], keepMs: 1_000, entriesMax: 100 }
      const { clock, store } = await setUp({ keepMs: 60_000, brief })
      await put(store, 'claim/a', '1')
      await put(store, 'lease/a', '2')
      await put(store, 'claim/a', '3')
      await put(store, 'lease/a', '4')
      await put(store, 'lease/a', '5')
      await advanceUntil(clock, () => store.stats().historyEntries === 1)
      expect(clock.monotonicMs()).toBeLessThan(60_000)

      expect(text((await store.list({ prefix: 'claim/', atRevision: 1 })).entries[0])).toBe('1')
      await expect(store.list({ prefix: 'lease/', atRevision: 4 })).rejects.toThrow(CompactedError)
      await expect(store.list({ prefix: 'lease/a', atRevision: 4 })).rejects.toThrow(CompactedError)
      await expect(store.list({ prefix: '', atRevision: 4 })).rejects.toThrow(CompactedError)
      const { events, watch } = collectEvents(store, { prefix: 'claim/', afterRevision: 0 })
      await waitUntil(() => watch.revision === 5)
      expect(events.map(formatEvent)).toEqual(['put claim/a@1=1', 'put claim/a@3=3<1'])
      expect((await store.list({ prefix: '', atRevision: 5 })).entries.map(text)).toEqual(['3', '5'])
    })

    it('is replayed in revision order across ordinary and brief keys', async () => {
      const { store } = await setUp({ brief: { prefixes: ['lease/'], keepMs: 60_000, entriesMax: 1_000 } })
      for (let index = 0; index < 9; index++) await put(store, index % 3 ? 'claim/a' : 'lease/a', '')
      await store.transact(() => ['claim/b', 'lease/b', 'claim/c'].map((key) => ({ put: key, value: bytes('') })))
      const { events } = collectEvents(store, { afterRevision: 0 })
      await waitUntil(() => events.length === 12)
      expect(events.map(({ revision }) => revision)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
      expect(events.slice(-3).map(({ key }) => key)).toEqual(['claim/b', 'lease/b', 'claim/c'])
    })

    it('drops deleted keys without reusing their revisions', async () => {
      const { clock, store, reopen } = await setUp({ keepMs: 0 })
      await put(store, 'a')
      await remove(store, 'a')
      await advanceUntil(clock, () => store.stats().historyEntries === 0)
      expect(store.stats().keys).toBe(0)
      await put(store, 'b') // also drops the compacted records from the medium
      await remove(store, 'b')
      await advanceUntil(clock, () => store.stats().historyEntries === 0)
      await store.close()
      const reopenedStore = await reopen()
      expect(reopenedStore.revision).toBe(4)
      expect(await put(reopenedStore, 'c')).toBe(5)
    })

    // On etcd, brief history is compacted only in memory.
    it.runIf(persistsBriefCompaction)(
      'stays compacted when the store is reopened, even without brief prefixes',
      async () => {
        const brief = { prefixes: ['lease/'], keepMs: 0, entriesMax: 0 }
        const { clock, store, reopen } = await setUp({ keepMs: 60_000, brief })
        await put(store, 'claim/a', '1')
        await put(store, 'claim/a', '2')
        for (let index = 3; index <= 7; index++) await put(store, 'lease/a', String(index))
        await advanceUntil(clock, () => store.stats().historyEntries === 1)
        await put(store, 'claim/b')
        await store.close()

        const unchangedStore = await reopen()
        await expect(unchangedStore.list({ prefix: 'lease/', atRevision: 6 })).rejects.toThrow(CompactedError)
        expect(text((await unchangedStore.list({ prefix: 'claim/', atRevision: 1 })).entries[0])).toBe('1')
        await unchangedStore.close()
        const reconfiguredStore = await reopen({ keepMs: 60_000 })
        await expect(reconfiguredStore.list({ prefix: 'lease/', atRevision: 6 })).rejects.toThrow(CompactedError)
        expect(text(await reconfiguredStore.get('lease/a'))).toBe('7')
        expect(reconfiguredStore.stats().historyEntries).toBe(1) // claim/a@1 is no longer readable, but not yet dropped
        await advanceUntil(clock, () => reconfiguredStore.stats().historyEntries === 0)
      },
    )

    it('SYS-3 ends a watcher with CompactedError if its next changes are compacted', async () => {
      const { clock, store } = await setUp({ keepMs: 1_000 })
      await Promise.all(Array.from({ length: 2_000 }, (_, index) => put(store, 'a', String(index))))
      const watchers = Array.from({ length: 50 }, () => collectEvents(store, { afterRevision: 0 }))
      await clock.advance(1_000)
      await advanceUntil(clock, () =>
        watchers.every(({ events, endReasons }) => events.length === 2_000 || endReasons.length > 0),
      )
      const overtakenWatchers = watchers.filter(({ endReasons }) => endReasons.length > 0)
      expect(overtakenWatchers.length).toBeGreaterThan(0)
      for (const { endReasons } of overtakenWatchers) expect(endReasons).toEqual([expect.any(CompactedError)])
      for (const { events } of watchers) {
        expect(events.map(({ revision }) => revision)).toEqual(events.map((_, index) => index + 1))
      }
    })
  })

  describe('expiry', () => {
    const putExpiring = (store: Store, key: string, expiresAtMs: number) =>
      store.transact(() => [{ put: key, value: bytes(key), expiresAtMs }])

    it('deletes an expired key and delivers the delete event', async () => {
      const { clock, store } = await setUp()
      const { events } = collectEvents(store)
      await putExpiring(store, 'a', clock.nowMs() + 5_000)
      await clock.advance(4_900)
      expect(text(await store.get('a'))).toBe('a')
      await clock.advance(200)
      await waitUntil(() => events.length === 2)
      expect(events.map(formatEvent)).toEqual(['put a@1=a', 'delete a@2<a'])
      expect(await store.get('a')).toBeUndefined()
    })

    it('is set or cleared by every put', async () => {
      const { clock, store } = await setUp()
      await putExpiring(store, 'renewed', clock.nowMs() + 1_000)
      await putExpiring(store, 'renewed', clock.nowMs() + 9_000)
      await putExpiring(store, 'cleared', clock.nowMs() + 1_000)
      await put(store, 'cleared')
      await putExpiring(store, 'control', clock.nowMs() + 2_000)
      await advanceUntil(clock, async () => (await store.get('control')) === undefined)
      expect(text(await store.get('renewed'))).toBe('renewed')
      await advanceUntil(clock, async () => (await store.get('renewed')) === undefined)
      expect(clock.monotonicMs()).toBeGreaterThanOrEqual(9_000)
      expect(text(await store.get('cleared'))).toBe('cleared')
    })

    it('SYS-3 deletes many keys that expire together, each at its own revision', async () => {
      const { clock, store } = await setUp()
      const { events } = collectEvents(store)
      const expiresAtMs = clock.nowMs() + 1_000
      await store.transact(() =>
        Array.from({ length: 700 }, (_, index) => ({ put: `k/${index}`, value: bytes(''), expiresAtMs })),
      )
      await advanceUntil(clock, () => events.length === 1_400)
      expect(store.stats().keys).toBe(0)
      expect(new Set(events.slice(700).map(({ revision }) => revision)).size).toBe(700)
    })

    it('continues when the store is reopened', async () => {
      const { clock, store, reopen } = await setUp()
      await putExpiring(store, 'soon', clock.nowMs() + 1_000)
      await putExpiring(store, 'later', clock.nowMs() + 60_000)
      await store.close()
      await clock.advance(30_000)
      const reopenedStore = await reopen()
      const { events } = collectEvents(reopenedStore)
      await advanceUntil(clock, () => events.length === 1)
      expect(events.map(formatEvent)).toEqual(['delete soon@3<soon'])
      await advanceUntil(clock, () => events.length === 2)
      expect(clock.monotonicMs()).toBeGreaterThanOrEqual(60_000)
    })
  })

  describe('closing', () => {
    it('waits for accepted transactions and rejects later calls', async () => {
      const { store, reopen } = await setUp()
      const { endReasons } = collectEvents(store)
      const acceptedWrites = Promise.all(Array.from({ length: 2_000 }, (_, index) => put(store, `k/${index}`)))
      const closeRun = store.close()
      await expect(put(store, 'late')).rejects.toThrow(StoreClosedError)
      await closeRun
      await acceptedWrites
      expect(endReasons).toEqual([expect.any(StoreClosedError)])
      await expect(store.get('k/1')).rejects.toThrow(StoreClosedError)
      await expect(store.list({ prefix: '' })).rejects.toThrow(StoreClosedError)
      expect(() => collectEvents(store)).toThrow(StoreClosedError)
      await store.close() // closing twice is not an error

      const reopenedStore = await reopen()
      expect(reopenedStore.stats().keys).toBe(2_000)
      expect(await reopenedStore.get('late')).toBeUndefined()
    })
  })

  it('behaves like the reference model in random histories', async () => {
    const key = fc.constantFrom('a', 'b', 'b/1', 'b/2', 'c', 'é', '日本')
    const write = fc.oneof(
      { weight: 3, arbitrary: fc.record({ put: key, value: fc.string({ maxLength: 5 }) }) },
      { weight: 1, arbitrary: fc.record({ delete: key }) },
    )
    const writes = fc.uniqueArray(write, {
      minLength: 1,
      maxLength: 3,
      selector: (write) => ('put' in write ? write.put : write.delete),
    })
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('transact' as const), writes }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('transact concurrently' as const),
          transactions: fc.array(writes, { maxLength: 4 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('pass time' as const), ms: fc.nat({ max: 2_000 }) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
    )
    const history = fc.record({
      keepMs: fc.constantFrom(0, 1_000, 1_000_000),
      entriesMax: fc.constantFrom(0, 3, 1_000),
      brief: fc.option(
        fc.record({
          prefixes: fc.constant(['b/']),
          keepMs: fc.constantFrom(0, 500),
          entriesMax: fc.constantFrom(0, 2, 1_000),
        }),
        { nil: undefined },
      ),
    })

    await fc.assert(
      fc.asyncProperty(history, fc.array(step, { maxLength: 25 }), async (historyOptions, steps) => {
        const { clock, store: firstStore, reopen } = await setUp(historyOptions)
        const model: HistoryModel = createModel()
        let store = firstStore
        const transact = async (texts: WriteText[]) => (await store.transact(() => texts.map(encodeWrite))).revision
        for (const action of steps) {
          if (action.do === 'transact') expect(await transact(action.writes)).toBe(model.transact(action.writes))
          else if (action.do === 'transact concurrently') {
            const revisions = await Promise.all(action.transactions.map(transact))
            const results = action.transactions.map((writes, index) => ({
              writes,
              revision: revisions[index] as Revision,
            }))
            while (results.length > 0) {
              if (!isOrdered) sortByCommitOrder(results, model)
              const { writes, revision } = results.shift() as (typeof results)[number]
              expect(revision).toBe(model.transact(writes))
            }
          } else if (action.do === 'pass time') await clock.advance(action.ms)
          else {
            await store.close()
            store = await reopen()
          }
          await expectModel(store, model, historyOptions)
        }
        await store.close()
      }),
      { numRuns: runs },
    )
  })
}

const encodeWrite = (write: WriteText): Write =>
  'put' in write ? { put: write.put, value: bytes(write.value) } : { delete: write.delete }

/** Sorts by revision. Of equal revisions, the transaction that wrote comes before those that only read. */
function sortByCommitOrder(results: { writes: readonly WriteText[]; revision: Revision }[], model: HistoryModel): void {
  const rank = (writes: readonly WriteText[]) => (model.wouldChange(writes) ? 0 : 1)
  results.sort((a, b) => a.revision - b.revision || rank(a.writes) - rank(b.writes))
}
