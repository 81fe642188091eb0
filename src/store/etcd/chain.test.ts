// Tests chains on a real etcd: concurrent transactions that rewrite one total commit in few etcd revisions, and the total is exact.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { systemClock } from '../../base/clock.ts'
import { type Store, type TransactionView, type Write, WriteRejectedError } from '../store.ts'
import { bytes, collectEvents, formatEvent, put, text, waitUntil } from '../testing/store.fixture.ts'
import { EtcdClient } from './client.ts'
import { openEtcdStore } from './index.ts'

const skipReason = etcdSkipReason()
const clock = systemClock()

describe.skipIf(skipReason)(`chains on etcd${skipReason ? ` (skipped: ${skipReason})` : ''}`, () => {
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
    prefix = `/chains-${storeCount++}`
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
  const totalOf = (view: TransactionView) => Number(text(view.get('totals/t')) ?? 0)
  const totalPut = (total: number): Write => ({ put: 'totals/t', value: bytes(String(total)), isCoalescable: true })
  /** Puts a key and adds 1 to the total, which may not exceed `max`. */
  const add = (store: Store, key: string, max = Number.POSITIVE_INFINITY) =>
    store.transact((view) => {
      const total = totalOf(view) + 1
      if (total > max) throw new Error('exceeded')
      return [{ put: key, value: bytes(key) }, totalPut(total)]
    })
  const addMany = (count: number, storeOf: (index: number) => Store, max?: number) =>
    Promise.allSettled(Array.from({ length: count }, (_, index) => add(storeOf(index), `k/${index}`, max)))
  const readTotal = async (store: Store) => Number(text(await store.get('totals/t')))
  const countKeys = async (store: Store) => (await store.list({ prefix: 'k/' })).entries.length

  it('commit concurrent transactions on one total in few etcd revisions, each with its own revision', async () => {
    const store = await openStore()
    await put(store, 'totals/t', '0')
    const revisionBefore = await readEtcdRevision()
    const { events } = collectEvents(store)
    const results = await addMany(300, () => store)
    expect((await readEtcdRevision()) - revisionBefore).toBeLessThanOrEqual(30)
    expect(await readTotal(store)).toBe(300)
    const keyRevisions = results.map((result) => (result.status === 'fulfilled' ? result.value.revisions[0] : 0))
    expect(new Set(keyRevisions).size).toBe(300)
    await waitUntil(() => events.filter(({ key }) => key !== 'totals/t').length === 300)
    const entries = (await store.list({ prefix: 'k/' })).entries
    expect(new Set(entries.map(({ modRevision }) => modRevision))).toEqual(new Set(keyRevisions))
    const total = await store.get('totals/t')
    expect(
      results.every((result) => result.status === 'fulfilled' && result.value.revision <= total!.modRevision),
    ).toBe(true)
  })

  it('REX-4 never exceed the maximum of a total that two servers change, and use it up', async () => {
    const stores = [await openStore(), await openStore()]
    await put(stores[0] as Store, 'totals/t', '0')
    const { events } = collectEvents(stores[1] as Store)
    const results = await addMany(200, (index) => stores[index % 2] as Store, 120)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(120)
    for (const store of stores) expect([await readTotal(store), await countKeys(store)]).toEqual([120, 120])
    const totals = events.filter(({ key }) => key === 'totals/t').map(({ entry }) => Number(text(entry)))
    expect(Math.max(...totals)).toBe(120)
  })

  it('let transactions list the uncommitted total', async () => {
    const store = await openStore()
    await put(store, 'totals/t', '0')
    const revisionBefore = await readEtcdRevision()
    const addByList = (key: string) =>
      store.transact((view) => {
        const [entry] = view.list('totals/')
        return [{ put: key, value: bytes(key) }, totalPut(Number(text(entry)) + 1)]
      })
    await Promise.all(Array.from({ length: 100 }, (_, index) => addByList(`k/${index}`)))
    expect(await readTotal(store)).toBe(100)
    expect((await readEtcdRevision()) - revisionBefore).toBeLessThanOrEqual(20)
  })

  it('make a transaction that counts uncommitted keys of a chain wait until they are committed', async () => {
    const store = await openStore()
    await put(store, 'totals/t', '0')
    const recount = () =>
      store.transact((view) => {
        const keyCount = view.list('k/').length
        totalOf(view)
        return [totalPut(keyCount)]
      })
    const work = Array.from({ length: 60 }, (_, index) => (index % 5 === 4 ? recount() : add(store, `k/${index}`)))
    await Promise.all(work)
    expect(await readTotal(store)).toBe(await countKeys(store))
  })

  it('keep a write of the total that is not coalescable, so that watchers receive it', async () => {
    const store = await openStore()
    await put(store, 'totals/t', '0')
    const { events } = collectEvents(store)
    const reset = () => store.transact((view) => [{ put: 'totals/t', value: bytes(`${totalOf(view)}.5`) }])
    await Promise.all([add(store, 'k/1'), add(store, 'k/2'), reset(), add(store, 'k/3')])
    await waitUntil(() => events.filter(({ key }) => key.startsWith('k/')).length === 3)
    const totals = events.filter(({ key }) => key === 'totals/t').map(({ entry }) => text(entry))
    expect(totals.some((total) => total?.endsWith('.5'))).toBe(true)
  })

  it('keep the put that creates the total', async () => {
    const store = await openStore()
    const { events } = collectEvents(store)
    await addMany(3, () => store)
    await waitUntil(() => events.some((event) => text(event.entry) === '3'))
    expect(events.filter(({ key }) => key === 'totals/t').map(formatEvent)[0]).toMatch(/^put totals\/t@\d+=1$/)
  })

  it('reject only the transaction that etcd rejects', async () => {
    const store = await openStore()
    await put(store, 'totals/t', '0')
    const addLarge = store.transact((view) => [
      { put: 'k/large', value: Buffer.alloc(3_000_000) },
      totalPut(totalOf(view) + 1),
    ])
    const otherAdds = addMany(50, () => store)
    await expect(addLarge).rejects.toThrow(WriteRejectedError)
    expect((await otherAdds).every(({ status }) => status === 'fulfilled')).toBe(true)
    expect([await readTotal(store), await countKeys(store)]).toEqual([50, 50])
  })
})
