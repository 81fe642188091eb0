// Tests several stores on one etcd, as used by several API servers: all stores have the same writes in the same order.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { systemClock } from '../../base/clock.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { type Store, type StoreEvent, WriteRejectedError } from '../store.ts'
import { bundleChild, runChild } from '../testing/run-child.ts'
import { advanceUntil, bytes, collectEvents, formatEvent, put, text, waitUntil } from '../testing/store.fixture.ts'
import { EtcdClient } from './client.ts'
import type { EtcdStoreOptions } from './etcd-store.ts'
import { openEtcdStore } from './index.ts'
import { SUB_REVISIONS } from './revision-mapping.ts'

const skipReason = etcdSkipReason()

describe.skipIf(skipReason)(`a shared etcd store${skipReason ? ` (skipped: ${skipReason})` : ''}`, () => {
  let etcd: RunningEtcd
  let storeCount = 0
  let prefix = ''
  const openedStores: Store[] = []
  const clock = systemClock()

  beforeAll(async () => {
    etcd = await startEtcd()
  })
  afterAll(() => etcd.remove())
  afterEach(async () => {
    await Promise.all(openedStores.splice(0).map((store) => store.close()))
  })

  async function openStore(options: Partial<EtcdStoreOptions> = {}): Promise<Store> {
    const store = await openEtcdStore({ endpoints: etcd.endpoints, prefix, clock, ...options })
    openedStores.push(store)
    return store
  }
  /** Opens two stores on one new prefix. */
  async function openTwoStores(): Promise<[Store, Store]> {
    prefix = `/shared-${storeCount++}`
    return [await openStore(), await openStore()]
  }

  it('SYS-1 returns the writes that another server has acknowledged', async () => {
    const [a, b] = await openTwoStores()
    for (let n = 1; n <= 100; n++) {
      const [writer, reader] = n % 2 ? [a, b] : [b, a]
      await put(writer, 'k', String(n))
      if (n % 3 === 0) expect(text(await reader.get('k'))).toBe(String(n))
      else if (n % 3 === 1) expect((await reader.list({ prefix: 'k' })).entries.map(text)).toEqual([String(n)])
      else {
        let observedValue: string | undefined
        await reader.transact((view) => {
          observedValue = text(view.get('k'))
          return []
        })
        expect(observedValue).toBe(String(n))
      }
    }
  })

  it('reruns a transaction that threw because of outdated state', async () => {
    const [a, b] = await openTwoStores()
    for (let n = 1; n <= 50; n++) {
      const revision = await put(a, 'k', String(n))
      await b.transact((view) => {
        if (view.get('k')?.modRevision !== revision) throw new Error('conflict')
        return []
      })
    }
  })

  it('loses no increment of a counter that two servers update', async () => {
    const [a, b] = await openTwoStores()
    const increment = (store: Store) =>
      store.transact((view) => [{ put: 'n', value: bytes(String(Number(text(view.get('n')) ?? 0) + 1)) }])
    const steps = Array.from({ length: 200 }, (_, index) => increment(index % 2 ? a : b))
    const revisions = (await Promise.all(steps)).map(({ revision }) => revision)
    expect(new Set(revisions).size).toBe(200)
    expect(text(await a.get('n'))).toBe('200')
  })

  it('preserves an invariant over two keys of which each server writes one', async () => {
    const [a, b] = await openTwoStores()
    const putUnlessExists = (store: Store, ownKey: string, otherKey: string) =>
      store.transact((view) => (view.get(otherKey) ? [] : [{ put: ownKey, value: bytes('taken') }]))
    for (let n = 0; n < 50; n++) {
      await Promise.all([putUnlessExists(a, `${n}/x`, `${n}/y`), putUnlessExists(b, `${n}/y`, `${n}/x`)])
      expect((await a.list({ prefix: `${n}/` })).entries).toHaveLength(1)
    }
  })

  it('SYS-3 delivers the same events in the same order to watchers of all servers', async () => {
    const [a, b] = await openTwoStores()
    const watchers = [a, b].map((store) => collectEvents(store, { afterRevision: 0 }))
    const write = async (store: Store, name: string) => {
      for (let n = 0; n < 100; n++) {
        await store.transact(() =>
          n % 4 === 3
            ? [{ delete: `k/${n % 5}` }, { put: `of/${name}`, value: bytes(String(n)) }]
            : [{ put: `k/${n % 5}`, value: bytes(`${name}${n}`) }],
        )
      }
    }
    await Promise.all([write(a, 'a'), write(b, 'b'), write(a, 'c')])
    const newestRevision = Math.max(a.revision, b.revision)
    await waitUntil(() => watchers.every(({ watch }) => watch.revision >= newestRevision))
    const [firstEvents, secondEvents] = watchers.map(({ events }) => events.map(formatEvent))
    expect(firstEvents).toEqual(secondEvents)
    const lateWatcher = collectEvents(await openStore(), { afterRevision: 0 })
    await waitUntil(() => lateWatcher.watch.revision >= newestRevision)
    expect(lateWatcher.events.map(formatEvent)).toEqual(firstEvents)
    expect(areInOrder(lateWatcher.events)).toBe(true)
  })

  it('SYS-3 replays whole transactions from a history larger than one etcd response', async () => {
    const [a] = await openTwoStores()
    const value = Buffer.alloc(100_000, 'x')
    for (let n = 0; n < 40; n++) {
      await a.transact(() => Array.from({ length: 5 }, (_, index) => ({ put: `k/${n}/${index}`, value })))
    }
    const calls: (readonly StoreEvent[])[] = []
    const store = await openStore()
    store.watch({
      prefix: '',
      afterRevision: 0,
      onEvents: (events) => void calls.push(events),
      onEnd: () => {},
    })
    await waitUntil(() => calls.flat().length >= 200)
    for (const events of calls) expect(events.length % 5).toBe(0)
    const keys = Array.from({ length: 200 }, (_, index) => `k/${Math.floor(index / 5)}/${index % 5}`)
    expect(calls.flat().map(({ key }) => key)).toEqual(keys)
  })

  it('does not write any part of a transaction that etcd rejects', async () => {
    const [a] = await openTwoStores()
    const manyWrites = Array.from({ length: 200 }, (_, index) => ({ put: `k/${index}`, value: bytes('') }))
    await expect(a.transact(() => manyWrites)).rejects.toThrow(WriteRejectedError)
    await expect(a.transact(() => manyWrites)).rejects.toThrow('too many operations')
    const largeWrites = [{ put: 'large', value: Buffer.alloc(3_000_000) }]
    await expect(a.transact(() => largeWrites)).rejects.toThrow(WriteRejectedError)
    expect((await a.list({ prefix: '' })).entries).toEqual([])
  })

  it('fails to open a prefix with foreign data or a newer format', async () => {
    await openTwoStores()
    const client = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 5_000 })
    const writeAbout = (value: string) => {
      const about = { key: Buffer.from(`${prefix}/about`), value: Buffer.from(value) }
      return client.txn({ success: [{ request: { case: 'requestPut', value: about } }] })
    }
    await writeAbout('something')
    await expect(openStore()).rejects.toThrow(`under ${prefix} is not a Stowage store`)
    await writeAbout('{"store":"stowage","format":7}')
    await expect(openStore()).rejects.toThrow('is a store of format 7; this version of Stowage reads formats 3 and 4')
    client.close()
  })

  it('ignores keys outside its prefix', async () => {
    const [a] = await openTwoStores()
    const watcher = collectEvents(a)
    const otherClient = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 5_000 })
    const writeOutsidePrefix = () =>
      otherClient.txn({ success: [{ request: { case: 'requestPut', value: { key: Buffer.from('/elsewhere') } } }] })
    for (let n = 0; n < 5; n++) {
      const { header } = await writeOutsidePrefix()
      const revision = await put(a, 'k', String(n))
      await writeOutsidePrefix()
      expect(header).toBeDefined()
      expect((await a.list({ prefix: '' })).revision).toBeGreaterThan(revision)
      expect(text(await a.get('k'))).toBe(String(n))
    }
    const reopenedStore = await openStore()
    expect(text(await reopenedStore.get('k'))).toBe('4')
    await waitUntil(() => watcher.events.length === 5)
    expect(watcher.events.map(({ key }) => key)).toEqual(['k', 'k', 'k', 'k', 'k'])
    otherClient.close()
  })

  it('deletes an expired key once, even though every server checks for expired keys', async () => {
    prefix = `/shared-${storeCount++}`
    const sharedClock = manualClock()
    const options = { clock: sharedClock, requestTimeoutMs: 1e12 }
    const [a, b] = [await openStore(options), await openStore(options)]
    const { events } = collectEvents(a)
    const expiresAtMs = sharedClock.nowMs() + 1_000
    await a.transact(() =>
      Array.from({ length: 100 }, (_, index) => ({ put: `k/${index}`, value: bytes(''), expiresAtMs })),
    )
    await advanceUntil(sharedClock, () => a.stats().keys === 0 && b.stats().keys === 0)
    expect(events.filter(({ type }) => type === 'delete')).toHaveLength(100)
  })

  it('compacts etcd to the history that is kept', async () => {
    prefix = `/shared-${storeCount++}`
    const testClock = manualClock()
    const store = await openStore({ clock: testClock, history: { keepMs: 60_000 }, requestTimeoutMs: 1e12 })
    for (let n = 0; n < 5; n++) await put(store, 'a', String(n))
    await testClock.advance(60_000)
    await put(store, 'a', 'last')
    const { createRevision } = (await store.get('a')) ?? {}
    const client = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 5_000 })
    const key = Buffer.from(`${prefix}/keys/a`)
    const firstRevision = (await client.range({ key })).kvs[0]?.createRevision
    expect(createRevision).toBe(SUB_REVISIONS)
    expect((await client.range({ key, revision: firstRevision })).kvs).toHaveLength(1)
    await testClock.advance(5 * 60_000)
    const isCompacted = () =>
      client.range({ key, revision: firstRevision }).then(
        () => false,
        (error) => error.isCompacted,
      )
    await waitUntil(isCompacted)
    const reopenedStore = await openStore()
    expect(reopenedStore.stats().compactedRevision).toBeGreaterThan(SUB_REVISIONS)
    expect(text(await reopenedStore.get('a'))).toBe('last')
    client.close()
  })

  it('SYS-1 keeps every acknowledged transaction, completely, when the writer is killed', async () => {
    const program = await bundleChild('etcd-writer-child.ts')
    for (let kill = 0; kill < 3; kill++) {
      prefix = `/killed-${kill}`
      const child = runChild([...program.command, etcd.endpoints[0] as string, prefix])
      expect(await child.nextLine(), child.errors()).toBe('ready')
      for (let line = 0; line < 100 + kill * 57; line++) await child.nextLine()
      child.process.kill('SIGKILL')
      await child.whenExited()
      const store = await openStore()
      const acknowledgedNumbers = new Map(
        child.lines.map((line) => /^ack (\d+) (\d+)$/.exec(line)?.slice(1) as [string, string]).filter(Boolean),
      )
      expect(acknowledgedNumbers.size).toBe(20)
      for (const [writer, n] of acknowledgedNumbers) {
        const [x, y, z] = (await store.list({ prefix: `w/${writer}/` })).entries.map(text)
        expect(Number(x?.split('.')[0])).toBeGreaterThanOrEqual(Number(n))
        expect(y).toBe(x)
        expect(z).toBe(x)
      }
    }
    await program.remove()
  })
})

const areInOrder = (events: readonly StoreEvent[]) =>
  events.every((event, index) => index === 0 || (events[index - 1] as StoreEvent).revision <= event.revision)
