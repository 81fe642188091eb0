// Group commit on a real etcd: transactions are grouped, a group is equivalent to running its transactions one by one,
// and every server assigns the same revisions, also after a restart.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { etcdMissing, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { systemClock } from '../../base/clock.ts'
import type { Store, Write } from '../store.ts'
import { bytes, collect, put, remove, show, text, until } from '../testing/helpers.ts'
import { EtcdClient } from './client.ts'
import type { ConditionalWrite } from './commit-queue.ts'
import { groupCommits, groupRequest } from './group.ts'
import { openEtcdStore } from './index.ts'
import { layoutOf } from './layout.ts'
import { RevisionMapping, SUB_REVISIONS } from './revision-mapping.ts'

const missing = etcdMissing()
const clock = systemClock()

describe.skipIf(missing)(`groups of transactions on etcd${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let etcd: RunningEtcd
  let raw: EtcdClient
  let prefix = ''
  let stores = 0
  const opened: Store[] = []
  beforeAll(async () => {
    etcd = await startEtcd()
    raw = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 5_000 })
  })
  afterAll(async () => {
    raw.close()
    await etcd.remove()
  })
  beforeEach(() => {
    prefix = `/groups-${stores++}`
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()))
  })

  async function open(): Promise<Store> {
    const store = await openEtcdStore({ endpoints: etcd.endpoints, prefix, clock })
    opened.push(store)
    return store
  }
  const etcdRevision = async () => Number((await raw.range({ key: Buffer.from('x') })).header?.revision)
  const together = (store: Store, transactions: readonly (readonly Write[])[]) =>
    Promise.all(transactions.map((writes) => store.transact(() => writes).then(({ revision }) => revision)))
  const write = (key: string, value = key): Write => ({ put: key, value: bytes(value) })
  const groupOf = (revision: number) => Math.floor(revision / SUB_REVISIONS)

  it('commits concurrent transactions in few etcd revisions, each with its own revision', async () => {
    const store = await open()
    const before = await etcdRevision()
    const revisions = await together(
      store,
      Array.from({ length: 500 }, (_, at) => [write(`k/${at}`)]),
    )
    expect((await etcdRevision()) - before).toBeLessThanOrEqual(50)
    expect(new Set(revisions).size).toBe(500)
    expect(Math.max(...revisions)).toBe(store.revision)
  })

  it('SYS-3 assigns a revision to every write of a single transaction', async () => {
    const [a, b] = [await open(), await open()]
    await put(a, 'old')
    const { revision, revisions } = await a.transact(() => [
      { delete: 'none' },
      write('x'),
      { delete: 'old' },
      write('y'),
    ])
    expect(revisions).toEqual([0, 2 * SUB_REVISIONS, 2 * SUB_REVISIONS + 1, 2 * SUB_REVISIONS + 2])
    expect(revision).toBe(2 * SUB_REVISIONS + 2)
    await raw.compact(await etcdRevision())
    for (const store of [a, b, await open()]) {
      expect((await store.list({ prefix: '' })).entries.map(({ modRevision }) => modRevision % SUB_REVISIONS)).toEqual([
        0, 2,
      ])
      expect(store.revision).toBe(revision)
    }
  })

  it('rejects a transaction with more writes than an etcd revision has sub-revisions', async () => {
    const store = await open()
    const writes = Array.from({ length: SUB_REVISIONS + 1 }, (_, at) => write(`k/${at}`))
    await expect(store.transact(() => writes)).rejects.toThrow(
      'a transaction may hold at most 1024 writes; this one has 1025',
    )
  })

  it('commits a single transaction without group metadata', async () => {
    const store = await open()
    const before = await etcdRevision()
    expect(await put(store, 'a')).toBe(SUB_REVISIONS)
    expect(await put(store, 'a')).toBe(2 * SUB_REVISIONS)
    expect((await etcdRevision()) - before).toBe(2)
    expect((await raw.range({ key: layoutOf(prefix).group })).kvs).toEqual([])
  })

  it('SYS-3 assigns the same revisions to deletes and puts of a group on every server and after a restart', async () => {
    const [a, b] = [await open(), await open()]
    const watchers = [a, b].map((store) => collect(store, { afterRevision: 0 }))
    await together(
      a,
      ['a', 'b', 'c', 'd', 'e'].map((key) => [write(key, 'old')]),
    )
    const revisions = await together(a, [
      [{ delete: 'a' }],
      [write('x'), { delete: 'b' }, write('y')],
      [{ delete: 'c' }, { delete: 'd' }],
      [write('z')],
      [{ delete: 'e' }, write('w')],
    ])
    const [r0, r1, r2, r3, r4] = revisions
    expect(new Set(revisions.map(groupOf)).size).toBe(1)
    expect(revisions.map((revision) => revision % SUB_REVISIONS)).toEqual([0, 3, 5, 6, 8])
    const before = (revision: number | undefined, writes: number) => Number(revision) - writes
    const expected = [
      `delete a@${r0}<old`,
      `put x@${before(r1, 2)}=x`,
      `delete b@${before(r1, 1)}<old`,
      `put y@${r1}=y`,
      `delete c@${before(r2, 1)}<old`,
      `delete d@${r2}<old`,
      `put z@${r3}=z`,
      `delete e@${before(r4, 1)}<old`,
      `put w@${r4}=w`,
    ]
    const late = await open()
    for (const { events } of [...watchers, collect(late, { afterRevision: 0 })]) {
      await until(() => events.length >= 14)
      expect(events.slice(5).map(show)).toEqual(expected)
    }
    const resumed = collect(late, { afterRevision: r1 })
    await until(() => resumed.events.length >= 5)
    expect(resumed.events.map(show)).toEqual(expected.slice(4))
    const keysAt = async (atRevision: number | undefined) =>
      (await late.list({ prefix: '', atRevision })).entries.map(({ key }) => key).join('')
    expect(await keysAt(r0)).toBe('bcde')
    expect(await keysAt(r1)).toBe('cdexy')
    expect(await keysAt(r3)).toBe('exyz')
  })

  it('restores all revisions on a server started after compaction, even if the newest is a delete', async () => {
    const store = await open()
    await together(
      store,
      Array.from({ length: 20 }, (_, at) => [write(`k/${at}`)]),
    )
    await together(
      store,
      Array.from({ length: 10 }, (_, at) => [write(`k/${at}`, 'again')]),
    )
    const [, , last] = await together(store, [[write('k/1', 'more')], [write('k/15', 'more')], [{ delete: 'k/19' }]])
    await raw.compact(await etcdRevision())
    const later = await open()
    expect(later.revision).toBe(last)
    expect(later.revision).toBe(store.revision)
    expect(later.stats().compactedRevision).toBe(last)
    const list = await later.list({ prefix: '' })
    expect(list).toEqual(await store.list({ prefix: '' }))
    expect(new Set(list.entries.map(({ createRevision }) => createRevision)).size).toBe(19)
    expect(collect(later, { afterRevision: last }).ended).toEqual([])
  })

  it('recreates a deleted key with a new creation revision', async () => {
    const store = await open()
    await together(store, [[write('x')], [write('a')]])
    await together(store, [[write('y')], [write('a', '2')]])
    await remove(store, 'a')
    const [, , revision] = await together(store, [[write('x')], [write('y')], [write('a', '3')]])
    const modRevision = await put(store, 'a', '4')
    for (const server of [store, await open()]) {
      expect(await server.get('a')).toMatchObject({ createRevision: revision, modRevision })
    }
  })

  it('does not commit two transactions that each read a key the other writes', async () => {
    const store = await open()
    const takeUnlessTaken = (mine: string, other: string) =>
      store.transact((view) => (view.get(other) ? [] : [write(mine)]))
    const names = Array.from({ length: 50 }, (_, at) => `${at}/`)
    await Promise.all(names.flatMap((n) => [takeUnlessTaken(`${n}x`, `${n}y`), takeUnlessTaken(`${n}y`, `${n}x`)]))
    for (const n of names) expect((await store.list({ prefix: n })).entries).toHaveLength(1)
  })

  it('SYS-1 runs transactions of several servers serializably, in revision order', async () => {
    const stores = [await open(), await open()]
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    const pick = (n: number, salt: number) => keys[(n * 7 + salt * 13 + ((n * n * salt) % 11)) % keys.length] as string
    const run = async (n: number) => {
      let seen: [string, string | undefined][] = []
      const writes: Write[] = n % 3 === 0 ? [{ delete: pick(n, 1) }] : [write(pick(n, 1), `${n}`)]
      if (n % 4 === 0 && pick(n, 2) !== pick(n, 1)) writes.push(write(pick(n, 2), `${n}`))
      const { revision } = await (stores[n % 5 === 0 ? 1 : 0] as Store).transact((view) => {
        seen = [pick(n, 3), pick(n, 4)].map((key) => [key, text(view.get(key))])
        return [...writes, write(`mark/${n}`)]
      })
      return { revision, seen, writes }
    }
    const done = await Promise.all(Array.from({ length: 300 }, (_, n) => run(n)))
    done.sort((one, other) => one.revision - other.revision)
    expect(new Set(done.map(({ revision }) => revision)).size).toBe(300)
    expect(new Set(done.map(({ revision }) => groupOf(revision))).size).toBeLessThan(300)
    const state = new Map<string, string>()
    for (const { seen, writes } of done) {
      for (const [key, value] of seen) expect(state.get(key)).toBe(value)
      for (const each of writes) {
        if ('put' in each) state.set(each.put, Buffer.from(each.value).toString())
        else state.delete(each.delete)
      }
    }
  })

  it('fails only the transaction of a group that has a conflict', async () => {
    const store = await open()
    const [, at] = await together(store, [[write('a')], [write('b')]])
    const { createRevision } = (await raw.range({ key: layoutOf(prefix).about })).kvs[0] ?? {}
    const mapping = new RevisionMapping({ base: Number(createRevision) })
    const old = await store.list({ prefix: '' })
    await put(store, 'b', 'changed by another')
    const group: ConditionalWrite[] = [
      { reads: new Map([['c', 0]]), writes: [write('c')] },
      { reads: new Map([['b', at as number]]), writes: [{ delete: 'b' }, write('d')] },
      { reads: new Map([['a', old.entries[0]?.modRevision as number]]), writes: [{ delete: 'a' }] },
    ]
    const { events } = collect(store)
    const get = (key: string) => old.entries.find((entry) => entry.key === key)
    const layout = layoutOf(prefix)
    const commits = groupCommits(group, await raw.txn(groupRequest(group, { layout, mapping, get })), mapping)
    expect(commits.map(({ committed }) => committed)).toEqual([true, false, true])
    await until(() => events.length >= 2)
    expect(events.map(show)).toEqual([`put c@${commits[0]?.revision}=c`, `delete a@${commits[2]?.revision}<a`])
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['changed by another', 'c'])
    expect(store.revision).toBe(commits[2]?.revision)
  })

  it('rejects only the transactions of a group that are too large for etcd', async () => {
    const store = await open()
    const outcomes = await Promise.allSettled([
      put(store, 'a'),
      store.transact(() => [{ put: 'large', value: Buffer.alloc(3_000_000) }]),
      store.transact(() => Array.from({ length: 200 }, (_, at) => write(`many/${at}`))),
      put(store, 'b'),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['a', 'b'])
  })
})
