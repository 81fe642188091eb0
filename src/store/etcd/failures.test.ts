// Tests the etcd store during failures of etcd: crash, leader change, hang, partition, lost response, compaction and data loss.
import { afterEach, describe, expect, it } from 'vitest'
import { type EtcdOptions, etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { startTcpProxy, type TcpProxy } from '../../../test/helpers/tcp-proxy.ts'
import { systemClock } from '../../base/clock.ts'
import { CompactedError, type Store, StoreClosedError, StoreUnavailableError } from '../store.ts'
import {
  bytes,
  type CollectedEvents,
  collectEvents,
  formatEvent,
  put,
  text,
  waitUntil,
} from '../testing/store.fixture.ts'
import { EtcdClient } from './client.ts'
import type { EtcdStoreOptions } from './etcd-store.ts'
import { openEtcdStore } from './index.ts'

const skipReason = etcdSkipReason()
const clock = systemClock()

describe.skipIf(skipReason)(`an etcd store during failures${skipReason ? ` (skipped: ${skipReason})` : ''}`, () => {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  })

  async function startEtcdCluster(options?: EtcdOptions): Promise<RunningEtcd> {
    const etcd = await startEtcd(options)
    cleanups.push(() => etcd.remove())
    return etcd
  }
  async function openStore(endpoints: readonly string[], options: Partial<EtcdStoreOptions> = {}): Promise<Store> {
    const store = await openEtcdStore({ endpoints, clock, requestTimeoutMs: 2_000, ...options })
    cleanups.push(() => store.close())
    return store
  }
  async function startProxy(endpoint: string): Promise<TcpProxy> {
    const proxy = await startTcpProxy(endpoint)
    cleanups.push(() => proxy.close())
    return proxy
  }

  /** Starts writers that write increasing numbers and record the last attempted and the last acknowledged number. */
  function startWriting(store: Store) {
    let isStopped = false
    const counts = Array.from({ length: 10 }, () => ({ acknowledged: 0, attempted: 0 }))
    const write = async (count: (typeof counts)[number], index: number) => {
      while (!isStopped) {
        const n = ++count.attempted
        const value = bytes(String(n))
        try {
          await store.transact(() => [
            { put: `w/${index}/a`, value },
            { put: `w/${index}/b`, value },
          ])
          count.acknowledged = n
        } catch (error) {
          expect(error).toBeInstanceOf(StoreUnavailableError)
        }
      }
    }
    const writers = Promise.all(counts.map(write))
    const total = () => counts.reduce((sum, { acknowledged }) => sum + acknowledged, 0)
    return {
      counts,
      async waitForAcknowledged(additionalCount: number) {
        const startCounts = counts.map(({ acknowledged }) => acknowledged)
        const goal = total() + additionalCount
        while (total() < goal || counts.some(({ acknowledged }, index) => acknowledged === startCounts[index]))
          await clock.sleep(5)
      },
      async stop() {
        isStopped = true
        await writers
      },
    }
  }

  async function expectNothingLost(
    store: Store,
    { counts }: ReturnType<typeof startWriting>,
    watcher: CollectedEvents,
  ) {
    for (const [index, { acknowledged, attempted }] of counts.entries()) {
      const [a, b] = (await store.list({ prefix: `w/${index}/` })).entries.map((entry) => Number(text(entry)))
      expect(a).toBe(b)
      expect(a).toBeGreaterThanOrEqual(acknowledged)
      expect(a).toBeLessThanOrEqual(attempted)
    }
    expect(watcher.endReasons).toEqual([])
    await waitUntil(() => watcher.watch.revision >= store.revision)
    const lastWrites = new Map<string, number>()
    for (const { key, revision, entry } of watcher.events) {
      const n = Number(text(entry))
      expect(n, `${key}@${revision}: each write once, in order`).toBeGreaterThan(lastWrites.get(key) ?? 0)
      lastWrites.set(key, n)
    }
  }

  it('SYS-1 SYS-3 keeps acknowledged writes and watches across a crash of etcd', async () => {
    const etcd = await startEtcdCluster()
    const store = await openStore(etcd.endpoints)
    const watcher = collectEvents(store)
    const writers = startWriting(store)
    for (let crash = 0; crash < 3; crash++) {
      await writers.waitForAcknowledged(200)
      await etcd.members[0]?.kill()
      await etcd.members[0]?.start()
    }
    await writers.waitForAcknowledged(200)
    await writers.stop()
    await expectNothingLost(store, writers, watcher)
    const reopenedStore = await openStore(etcd.endpoints)
    const replay = collectEvents(reopenedStore, { afterRevision: 0 })
    await waitUntil(() => replay.watch.revision >= reopenedStore.revision)
    expect(replay.events.map(formatEvent)).toEqual(watcher.events.map(formatEvent))
  })

  it('SYS-1 SYS-3 keeps acknowledged writes and watches when the leader crashes', async () => {
    const etcd = await startEtcdCluster({ members: 3 })
    const store = await openStore(etcd.endpoints, { requestTimeoutMs: 5_000 })
    const secondStore = await openStore([...etcd.endpoints].reverse(), { requestTimeoutMs: 5_000 })
    const watchers = [collectEvents(store), collectEvents(secondStore)] as const
    const writers = startWriting(store)
    for (let change = 0; change < 2; change++) {
      await writers.waitForAcknowledged(100)
      const leader = await etcd.leader()
      await leader.kill()
      await writers.waitForAcknowledged(100)
      await leader.start()
    }
    await writers.waitForAcknowledged(100)
    await writers.stop()
    await expectNothingLost(store, writers, watchers[0])
    await expectNothingLost(secondStore, writers, watchers[1])
    const newestRevision = store.revision
    await waitUntil(() => watchers.every(({ watch }) => watch.revision >= newestRevision))
    expect(watchers[1].events.map(formatEvent)).toEqual(watchers[0].events.map(formatEvent))
  })

  it('switches to another member when one hangs', async () => {
    const etcd = await startEtcdCluster({ members: 3 })
    const store = await openStore(etcd.endpoints, { requestTimeoutMs: 1_000 })
    const { events } = collectEvents(store)
    await put(store, 'a', '1')
    etcd.members[0]?.signal('SIGSTOP')
    cleanups.push(() => etcd.members[0]?.signal('SIGCONT'))
    const writeUntilDone = async (): Promise<unknown> =>
      put(store, 'a', '2').catch((error) => {
        expect(error).toBeInstanceOf(StoreUnavailableError)
        return writeUntilDone()
      })
    await writeUntilDone()
    while (text(await store.get('a').catch(() => undefined)) !== '2') await clock.sleep(50)
    expect(text(events.at(-1)?.entry)).toBe('2')
  })

  it('SYS-11 reports a problem while etcd hangs', async () => {
    const etcd = await startEtcdCluster()
    const store = await openStore(etcd.endpoints)
    expect(await store.problem?.()).toBeUndefined()
    etcd.members[0]?.signal('SIGSTOP')
    cleanups.push(() => etcd.members[0]?.signal('SIGCONT'))
    while (!(await store.problem?.())) await clock.sleep(50)
    expect(await store.problem?.()).toBe('not responding')
    etcd.members[0]?.signal('SIGCONT')
    while (await store.problem?.()) await clock.sleep(50)
  })

  it('fails with StoreUnavailableError while etcd is down, and recovers', async () => {
    const etcd = await startEtcdCluster()
    const store = await openStore(etcd.endpoints, { requestTimeoutMs: 300 })
    await put(store, 'a')
    await etcd.members[0]?.kill()
    await expect(store.get('a')).rejects.toThrow(StoreUnavailableError)
    await expect(store.list({ prefix: '' })).rejects.toThrow(StoreUnavailableError)
    const writeError = await put(store, 'a').catch((error) => error)
    expect(writeError).toBeInstanceOf(StoreUnavailableError)
    await expect(openEtcdStore({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 300 })).rejects.toThrow(
      /the store is unavailable: etcd is not responding/,
    )
    await etcd.members[0]?.start()
    while (!(await store.get('a').catch(() => undefined))) await clock.sleep(20)
    await put(store, 'b')
  })

  it('reports a write with a lost response as possibly written, and does not retry it', async () => {
    const etcd = await startEtcdCluster()
    const proxy = await startProxy(etcd.endpoints[0] as string)
    const directStore = await openStore(etcd.endpoints)
    const store = await openStore([proxy.endpoint], { requestTimeoutMs: 500 })
    await put(store, 'n', '0')
    expect(text(await directStore.get('n'))).toBe('0') // updates the replica
    const { events } = collectEvents(directStore)
    proxy.dropServerData()
    const writeError = await put(store, 'n', '1').catch((error) => error)
    expect(writeError).toBeInstanceOf(StoreUnavailableError)
    expect(writeError).toMatchObject({ mayBeWritten: true })
    expect(writeError.message).toContain('the write may or may not have been committed')
    expect(text(await directStore.get('n'))).toBe('1')
    proxy.cut()
    proxy.restore()
    while (text(await store.get('n').catch(() => undefined)) !== '1') await clock.sleep(20)
    await put(store, 'n', '2')
    await waitUntil(() => events.length >= 2)
    expect(events.map(formatEvent)).toEqual([
      expect.stringMatching(/^put n@\d+=1<0$/),
      expect.stringMatching(/^put n@\d+=2<1$/),
    ])
  })

  it('reports every transaction of a group with a lost response as possibly written, and writes the group completely', async () => {
    const etcd = await startEtcdCluster()
    const proxy = await startProxy(etcd.endpoints[0] as string)
    const directStore = await openStore(etcd.endpoints)
    const store = await openStore([proxy.endpoint], { requestTimeoutMs: 500 })
    await put(store, 'before')
    proxy.dropServerData()
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => put(store, `k/${index}`).catch((error) => error)),
    )
    for (const outcome of results) expect(outcome).toMatchObject({ name: 'StoreUnavailableError', mayBeWritten: true })
    expect((await directStore.list({ prefix: 'k/' })).entries).toHaveLength(20)
    proxy.cut()
    proxy.restore()
    const listRecovered = async () => (await store.list({ prefix: 'k/' }).catch(() => undefined))?.entries
    while ((await listRecovered())?.length !== 20) await clock.sleep(20)
    expect(await listRecovered()).toEqual((await directStore.list({ prefix: 'k/' })).entries)
  })

  it('SYS-1 SYS-8 rejects writes while its member is cut off from the other members, and continues afterwards', async () => {
    const etcd = await startEtcdCluster({ members: 3 })
    const isolatedMember = await etcd.leader()
    const isolatedStore = await openStore([isolatedMember.endpoint], { requestTimeoutMs: 1_000 })
    const store = await openStore(etcd.endpoints.filter((endpoint) => endpoint !== isolatedMember.endpoint))
    const watcher = collectEvents(isolatedStore)
    await put(isolatedStore, 'a', '1')
    isolatedMember.peers.cut()
    await expect(put(isolatedStore, 'b', '1')).rejects.toBeInstanceOf(StoreUnavailableError)
    await waitUntil(async () => !(await isolatedMember.isLeader()))
    while (
      !(await put(store, 'a', '2').then(
        () => true,
        () => false,
      ))
    )
      await clock.sleep(20)
    isolatedMember.peers.restore()
    while (text(await isolatedStore.get('a').catch(() => undefined)) !== '2') await clock.sleep(20)
    await put(isolatedStore, 'a', '3')
    await waitUntil(() => watcher.watch.revision >= isolatedStore.revision)
    expect(watcher.endReasons).toEqual([])
    const valuesOfA = watcher.events.filter(({ key }) => key === 'a').map(({ entry }) => text(entry))
    expect(valuesOfA).toEqual(['1', '2', '3'])
  })

  it('SYS-3 ends watchers whose next changes etcd has compacted, and serves new watchers', async () => {
    const etcd = await startEtcdCluster()
    const proxy = await startProxy(etcd.endpoints[0] as string)
    const directStore = await openStore(etcd.endpoints)
    const store = await openStore([proxy.endpoint], { requestTimeoutMs: 300 })
    const initialRevision = await put(store, 'old')
    const watcher = collectEvents(store)
    proxy.cut()
    for (let n = 0; n < 10; n++) await put(directStore, 'a', String(n))
    await directStore.transact(() => [{ delete: 'old' }])
    const client = new EtcdClient({ endpoints: etcd.endpoints, clock, requestTimeoutMs: 2_000 })
    const newestRevision = Number((await client.range({ key: Buffer.from('x') })).header?.revision)
    await client.compact(newestRevision)
    client.close()
    proxy.restore()
    while (text(await store.get('a').catch(() => undefined)) !== '9') await clock.sleep(20)
    expect(watcher.endReasons).toEqual([expect.any(CompactedError)])
    expect(watcher.events).toEqual([])
    expect(() => collectEvents(store, { afterRevision: initialRevision })).toThrow(CompactedError)
    expect(await store.get('old')).toBeUndefined()
    const newWatcher = collectEvents(store)
    await put(directStore, 'b')
    await waitUntil(() => newWatcher.events.length === 1)
  })

  it('closes the store when etcd has lost acknowledged revisions', async () => {
    const etcd = await startEtcdCluster()
    const proxy = await startProxy(etcd.endpoints[0] as string)
    const store = await openStore([proxy.endpoint], { requestTimeoutMs: 1_000 })
    for (let n = 0; n < 10; n++) await put(store, 'a', String(n))
    proxy.cut()
    const emptyCluster = await startEtcdCluster()
    proxy.retarget(emptyCluster.endpoints[0] as string)
    proxy.restore()
    let result: unknown
    while (!(result instanceof StoreClosedError)) {
      result = await store.get('a').catch((error) => error)
      await clock.sleep(20)
    }
    expect((result as Error).message).toMatch(/etcd went back from revision \d+ to 1/)
  })
})
