// Tests group commit on a real etcd: a group is equivalent to running its transactions one by one, and every server assigns
// the same revisions, even after a restart.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { systemClock } from '../../base/clock.ts'
import type { Store, Write } from '../store.ts'
import { bytes, collectEvents, formatEvent, put, remove, text, waitUntil } from '../testing/store.fixture.ts'
import { EtcdClient } from './client.ts'
import type { ConditionalTransaction } from './commit-queue.ts'
import { decodeCommits, encodeGroup } from './group.ts'
import { openEtcdStore } from './index.ts'
import { layoutOf } from './layout.ts'
import { RevisionMapping, SUB_REVISIONS } from './revision-mapping.ts'

const skipReason = etcdSkipReason()
const clock = systemClock()

describe.skipIf(skipReason)(`group commit on etcd${skipReason ? ` (skipped: ${skipReason})` : ''}`, () => {
  let etcd: RunningEtcd
  let client: EtcdClient
  let prefix = ''
  let storeCount = 0
  const openedStores: Store[] = []
  beforeAll(async () => {
    etcd = await startEtcd()
    client = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 5_000 })
  })
  afterAll(async () => {
    client.close()
    await etcd.remove()
  })
  beforeEach(() => {
    prefix = `/groups-${storeCount++}`
  })
  afterEach(async () => {
    await Promise.all(openedStores.splice(0).map((store) => store.close()))
  })

  async function openStore(): Promise<Store> {
    const store = await openEtcdStore({ endpoints: etcd.endpoints, prefix, clock })
    openedStores.push(store)
    return store
  }
  const readEtcdRevision = async () => Number((await client.range({ key: Buffer.from('x') })).header?.revision)
  const transactAll = (store: Store, transactions: readonly (readonly Write[])[]) =>
    Promise.all(transactions.map((writes) => store.transact(() => writes).then(({ revision }) => revision)))
  const putOf = (key: string, value = key): Write => ({ put: key, value: bytes(value) })
  const groupOf = (revision: number) => Math.floor(revision / SUB_REVISIONS)

  it('commits concurrent transactions in few etcd revisions, each with its own revision', async () => {
    const store = await openStore()
    const previousRevision = await readEtcdRevision()
    const revisions = await transactAll(
      store,
      Array.from({ length: 500 }, (_, index) => [putOf(`k/${index}`)]),
    )
    expect((await readEtcdRevision()) - previousRevision).toBeLessThanOrEqual(50)
    expect(new Set(revisions).size).toBe(500)
    expect(Math.max(...revisions)).toBe(store.revision)
  })

  it('SYS-3 assigns consecutive revisions to the writes of a transaction, and 0 to a delete of a missing key', async () => {
    const [a, b] = [await openStore(), await openStore()]
    await put(a, 'old')
    const { revision, revisions } = await a.transact(() => [
      { delete: 'none' },
      putOf('x'),
      { delete: 'old' },
      putOf('y'),
    ])
    expect(revisions).toEqual([0, 2 * SUB_REVISIONS, 2 * SUB_REVISIONS + 1, 2 * SUB_REVISIONS + 2])
    expect(revision).toBe(2 * SUB_REVISIONS + 2)
    await client.compact(await readEtcdRevision())
    for (const store of [a, b, await openStore()]) {
      expect((await store.list({ prefix: '' })).entries.map(({ modRevision }) => modRevision % SUB_REVISIONS)).toEqual([
        0, 2,
      ])
      expect(store.revision).toBe(revision)
    }
  })

  it('rejects a transaction with more writes than an etcd revision has sub-revisions', async () => {
    const store = await openStore()
    const writes = Array.from({ length: SUB_REVISIONS + 1 }, (_, index) => putOf(`k/${index}`))
    await expect(store.transact(() => writes)).rejects.toThrow(
      'a transaction may hold at most 1024 writes; this one has 1025',
    )
  })

  it('commits a single transaction without group metadata', async () => {
    const store = await openStore()
    const previousRevision = await readEtcdRevision()
    expect(await put(store, 'a')).toBe(SUB_REVISIONS)
    expect(await put(store, 'a')).toBe(2 * SUB_REVISIONS)
    expect((await readEtcdRevision()) - previousRevision).toBe(2)
    expect((await client.range({ key: layoutOf(prefix).group })).kvs).toEqual([])
  })

  it('SYS-3 assigns the same revisions to deletes and puts of a group on every server and after a restart', async () => {
    const [a, b] = [await openStore(), await openStore()]
    const watchers = [a, b].map((store) => collectEvents(store, { afterRevision: 0 }))
    await transactAll(
      a,
      ['a', 'b', 'c', 'd', 'e'].map((key) => [putOf(key, 'old')]),
    )
    const revisions = await transactAll(a, [
      [{ delete: 'a' }],
      [putOf('x'), { delete: 'b' }, putOf('y')],
      [{ delete: 'c' }, { delete: 'd' }],
      [putOf('z')],
      [{ delete: 'e' }, putOf('w')],
    ])
    const [r0, r1, r2, r3, r4] = revisions
    expect(new Set(revisions.map(groupOf)).size).toBe(1)
    expect(revisions.map((revision) => revision % SUB_REVISIONS)).toEqual([0, 3, 5, 6, 8])
    const revisionBefore = (revision: number | undefined, writes: number) => Number(revision) - writes
    const expectedEvents = [
      `delete a@${r0}<old`,
      `put x@${revisionBefore(r1, 2)}=x`,
      `delete b@${revisionBefore(r1, 1)}<old`,
      `put y@${r1}=y`,
      `delete c@${revisionBefore(r2, 1)}<old`,
      `delete d@${r2}<old`,
      `put z@${r3}=z`,
      `delete e@${revisionBefore(r4, 1)}<old`,
      `put w@${r4}=w`,
    ]
    const reopenedStore = await openStore()
    for (const { events } of [...watchers, collectEvents(reopenedStore, { afterRevision: 0 })]) {
      await waitUntil(() => events.length >= 14)
      expect(events.slice(5).map(formatEvent)).toEqual(expectedEvents)
    }
    const resumedWatcher = collectEvents(reopenedStore, { afterRevision: r1 })
    await waitUntil(() => resumedWatcher.events.length >= 5)
    expect(resumedWatcher.events.map(formatEvent)).toEqual(expectedEvents.slice(4))
    const keysAt = async (atRevision: number | undefined) =>
      (await reopenedStore.list({ prefix: '', atRevision })).entries.map(({ key }) => key).join('')
    expect(await keysAt(r0)).toBe('bcde')
    expect(await keysAt(r1)).toBe('cdexy')
    expect(await keysAt(r3)).toBe('exyz')
  })

  it('restores all revisions on a server that is started after compaction, even if the newest is a delete', async () => {
    const store = await openStore()
    await transactAll(
      store,
      Array.from({ length: 20 }, (_, index) => [putOf(`k/${index}`)]),
    )
    await transactAll(
      store,
      Array.from({ length: 10 }, (_, index) => [putOf(`k/${index}`, 'again')]),
    )
    const [, , lastRevision] = await transactAll(store, [
      [putOf('k/1', 'more')],
      [putOf('k/15', 'more')],
      [{ delete: 'k/19' }],
    ])
    await client.compact(await readEtcdRevision())
    const reopenedStore = await openStore()
    expect(reopenedStore.revision).toBe(lastRevision)
    expect(reopenedStore.revision).toBe(store.revision)
    expect(reopenedStore.stats().compactedRevision).toBe(lastRevision)
    const list = await reopenedStore.list({ prefix: '' })
    expect(list).toEqual(await store.list({ prefix: '' }))
    expect(new Set(list.entries.map(({ createRevision }) => createRevision)).size).toBe(19)
    expect(collectEvents(reopenedStore, { afterRevision: lastRevision }).endReasons).toEqual([])
  })

  it('recreates a deleted key with a new creation revision', async () => {
    const store = await openStore()
    await transactAll(store, [[putOf('x')], [putOf('a')]])
    await transactAll(store, [[putOf('y')], [putOf('a', '2')]])
    await remove(store, 'a')
    const [, , revision] = await transactAll(store, [[putOf('x')], [putOf('y')], [putOf('a', '3')]])
    const modRevision = await put(store, 'a', '4')
    for (const server of [store, await openStore()]) {
      expect(await server.get('a')).toMatchObject({ createRevision: revision, modRevision })
    }
  })

  it('commits only one of two transactions that each read a key that the other writes', async () => {
    const store = await openStore()
    const putUnlessExists = (ownKey: string, otherKey: string) =>
      store.transact((view) => (view.get(otherKey) ? [] : [putOf(ownKey)]))
    const names = Array.from({ length: 50 }, (_, index) => `${index}/`)
    await Promise.all(names.flatMap((n) => [putUnlessExists(`${n}x`, `${n}y`), putUnlessExists(`${n}y`, `${n}x`)]))
    for (const n of names) expect((await store.list({ prefix: n })).entries).toHaveLength(1)
  })

  it('SYS-1 runs transactions of several servers serializably, in revision order', async () => {
    const stores = [await openStore(), await openStore()]
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    const keyFor = (n: number, salt: number) =>
      keys[(n * 7 + salt * 13 + ((n * n * salt) % 11)) % keys.length] as string
    const run = async (n: number) => {
      let observedValues: [string, string | undefined][] = []
      const writes: Write[] = n % 3 === 0 ? [{ delete: keyFor(n, 1) }] : [putOf(keyFor(n, 1), `${n}`)]
      if (n % 4 === 0 && keyFor(n, 2) !== keyFor(n, 1)) writes.push(putOf(keyFor(n, 2), `${n}`))
      const { revision } = await (stores[n % 5 === 0 ? 1 : 0] as Store).transact((view) => {
        observedValues = [keyFor(n, 3), keyFor(n, 4)].map((key) => [key, text(view.get(key))])
        return [...writes, putOf(`mark/${n}`)]
      })
      return { revision, observed: observedValues, writes }
    }
    const results = await Promise.all(Array.from({ length: 300 }, (_, n) => run(n)))
    results.sort((a, b) => a.revision - b.revision)
    expect(new Set(results.map(({ revision }) => revision)).size).toBe(300)
    expect(new Set(results.map(({ revision }) => groupOf(revision))).size).toBeLessThan(300)
    const state = new Map<string, string>()
    for (const { observed, writes } of results) {
      for (const [key, value] of observed) expect(state.get(key)).toBe(value)
      for (const write of writes) {
        if ('put' in write) state.set(write.put, Buffer.from(write.value).toString())
        else state.delete(write.delete)
      }
    }
  })

  it('fails only the transaction of a group that has a conflict', async () => {
    const store = await openStore()
    const [, revisionOfB] = await transactAll(store, [[putOf('a')], [putOf('b')]])
    const { createRevision } = (await client.range({ key: layoutOf(prefix).about })).kvs[0] ?? {}
    const mapping = new RevisionMapping({ base: Number(createRevision) })
    const snapshot = await store.list({ prefix: '' })
    await put(store, 'b', 'changed by another')
    const group: ConditionalTransaction[] = [
      { reads: new Map([['c', 0]]), writes: [putOf('c')] },
      { reads: new Map([['b', revisionOfB as number]]), writes: [{ delete: 'b' }, putOf('d')] },
      { reads: new Map([['a', snapshot.entries[0]?.modRevision as number]]), writes: [{ delete: 'a' }] },
    ]
    const { events } = collectEvents(store)
    const get = (key: string) => snapshot.entries.find((entry) => entry.key === key)
    const layout = layoutOf(prefix)
    const commits = decodeCommits(
      group,
      await client.txn(encodeGroup(group, { layout, mapping, get, hasChecksum: true })),
      mapping,
    )
    expect(commits.map(({ isCommitted }) => isCommitted)).toEqual([true, false, true])
    await waitUntil(() => events.length >= 2)
    expect(events.map(formatEvent)).toEqual([`put c@${commits[0]?.revision}=c`, `delete a@${commits[2]?.revision}<a`])
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['changed by another', 'c'])
    expect(store.revision).toBe(commits[2]?.revision)
  })

  it('rejects only the transactions of a group that are too large for etcd', async () => {
    const store = await openStore()
    const outcomes = await Promise.allSettled([
      put(store, 'a'),
      store.transact(() => [{ put: 'large', value: Buffer.alloc(3_000_000) }]),
      store.transact(() => Array.from({ length: 200 }, (_, index) => putOf(`many/${index}`))),
      put(store, 'b'),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['a', 'b'])
  })
})
