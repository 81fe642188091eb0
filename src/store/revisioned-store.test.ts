// Tests the state of the store during a write and after failures of its medium, which store.contract.ts does not cover.
import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { AppendRejectedError, type Medium, type MediumBatch } from './medium.ts'
import { memoryMedium } from './memory.ts'
import { openRevisionedStore, PENDING_MAX } from './revisioned-store.ts'
import { type HistoryOptions, StoreBusyError, StoreClosedError, WriteRejectedError } from './store.ts'
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
import type { ValueTransformer } from './value-transformer.ts'

/** Creates a store whose medium calls `control.beforeWrite` before each write, to delay the write or make it fail. */
async function setUp(history?: HistoryOptions) {
  const clock = manualClock()
  const memory = memoryMedium()
  const batches: MediumBatch[] = []
  const control = { beforeWrite: async (): Promise<void> => {} }
  const medium: Medium = {
    ...memory,
    async write(batch) {
      batches.push(batch)
      await control.beforeWrite()
      await memory.write(batch)
    },
  }
  const openStore = () => openRevisionedStore({ medium, clock, history })
  return { clock, control, batches, open: openStore, store: await openStore() }
}

const throwDiskFull = async () => {
  throw new AppendRejectedError('the disk is full')
}

/** Creates a gate whose `wait` resolves after `open` is called. */
function createGate() {
  let open = () => {}
  const whenOpened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, wait: () => whenOpened }
}

describe('a store whose medium can write in the thread of the event loop', () => {
  /** Creates a store whose commits take `control.commitMs`, and that calls `control.onPoll` to read arriving requests. */
  async function setUpBlocking() {
    const clock = manualClock()
    const memory = memoryMedium()
    const control = { commitMs: 0, onPoll: () => {} }
    const writes: string[] = []
    const medium: Medium = {
      ...memory,
      whenPolled: async () => void control.onPoll(),
      async write(batch, { isBlocking = false } = {}) {
        writes.push(`${isBlocking ? 'here' : 'elsewhere'} ${batch.append.length}`)
        await clock.advance(control.commitMs)
        await memory.write(batch)
      },
    }
    const store = await openRevisionedStore({ medium, clock })
    /** Writes keys one after the other, and returns where each was written. */
    const putAlone = async (count: number) => {
      const first = writes.length
      for (let index = 0; index < count; index++) await put(store, `k/${writes.length}`)
      return writes.slice(first)
    }
    return { clock, control, writes, store, putAlone }
  }

  it('writes a transaction there that is alone', async () => {
    const { putAlone } = await setUpBlocking()
    expect(await putAlone(3)).toEqual(['here 1', 'here 1', 'here 1'])
  })

  it('writes transactions elsewhere that arrive together', async () => {
    const { store, control, writes } = await setUpBlocking()
    await Promise.all([put(store, 'a'), put(store, 'b')])
    expect(writes).toEqual(['elsewhere 2'])
    let other: Promise<unknown> | undefined
    control.onPoll = () => {
      other ??= put(store, 'd')
    }
    await put(store, 'c')
    await other
    expect(writes).toEqual(['elsewhere 2', 'elsewhere 2'])
  })

  it('writes elsewhere while the disk is slow, except once per 20 times the duration of a write', async () => {
    const { clock, control, putAlone } = await setUpBlocking()
    control.commitMs = 5
    expect(await putAlone(9)).toEqual(Array(9).fill('here 1'))
    for (let round = 0; round < 3; round++)
      expect(await putAlone(21)).toEqual([...Array(20).fill('elsewhere 1'), 'here 1'])
    await clock.advance(100)
    control.commitMs = 0.5
    expect(await putAlone(40)).toEqual(Array(40).fill('here 1'))
  })

  it('writes elsewhere after a stall of the disk, for 20 times its duration', async () => {
    const { clock, control, putAlone } = await setUpBlocking()
    control.commitMs = 5_000
    expect(await putAlone(1)).toEqual(['here 1'])
    control.commitMs = 0.5
    expect(await putAlone(10)).toEqual(Array(10).fill('elsewhere 1'))
    await clock.advance(99_000)
    expect(await putAlone(1)).toEqual(['elsewhere 1'])
    await clock.advance(1_000)
    expect(await putAlone(1)).toEqual(['here 1'])
  })

  it('writes a large transaction elsewhere', async () => {
    const { store, writes } = await setUpBlocking()
    await store.transact(() => [{ put: 'a', value: Buffer.alloc(65_000) }])
    await store.transact(() => [{ put: 'a', value: Buffer.alloc(66_000) }])
    await store.transact(() => Array.from({ length: 65 }, (_, index) => ({ put: `k/${index}`, value: bytes('x') })))
    expect(writes).toEqual(['here 1', 'elsewhere 1', 'elsewhere 65'])
  })

  it('writes an accepted transaction if the store is closed meanwhile', async () => {
    const { store, control } = await setUpBlocking()
    control.onPoll = () => void store.close()
    expect(await put(store, 'a')).toBe(1) // accepted before the store closes
    await expect(put(store, 'b')).rejects.toThrow(StoreClosedError)
  })
})

describe('a store that is writing a batch', () => {
  it('SYS-1 hides the batch from reads and watches', async () => {
    const { control, batches, store } = await setUp()
    await put(store, 'a', 'old')
    const { events } = collectEvents(store)
    const gate = createGate()
    control.beforeWrite = gate.wait
    const pendingPut = put(store, 'a', 'new')
    await waitUntil(() => batches.length === 2)

    expect(text(await store.get('a'))).toBe('old')
    expect(store.revision).toBe(1)
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['old'])
    expect(events).toEqual([])
    gate.open()
    expect(await pendingPut).toBe(2)
    expect(text(await store.get('a'))).toBe('new')
    expect(events.map(formatEvent)).toEqual(['put a@2=new<old'])
  })

  it('collects new transactions into the next batch', async () => {
    const { control, batches, store } = await setUp()
    const gate = createGate()
    control.beforeWrite = gate.wait
    const firstPut = put(store, 'a')
    await waitUntil(() => batches.length === 1)
    const otherPuts = Promise.all(['b', 'c', 'd'].map((key) => put(store, key)))
    gate.open()
    expect([await firstPut, ...(await otherPuts)]).toEqual([1, 2, 3, 4])
    expect(batches.map(({ append }) => append.length)).toEqual([1, 3])
  })

  it('coalesces superseded totals, while each transaction reads the total of the previous one', async () => {
    const { batches, store, open } = await setUp()
    const add = (key: string, isCoalescable: boolean) =>
      store.transact((view) => {
        const total = String(Number(text(view.get('total')) ?? 0) + 1)
        return [
          { put: key, value: bytes(key) },
          { put: 'total', value: bytes(total), isCoalescable },
        ]
      })
    await add('k/first', true)
    const { events } = collectEvents(store)
    const revisions = await Promise.all(Array.from({ length: 100 }, (_, index) => add(`k/${index}`, true)))
    expect(revisions.map(({ revision }) => revision)).toEqual(Array.from({ length: 100 }, (_, index) => 4 + 2 * index))
    expect(events.filter(({ key }) => key === 'total').map(formatEvent)).toEqual(['put total@202=101<1'])
    expect(events).toHaveLength(101)
    expect(batches.at(-1)?.append).toHaveLength(101)
    expect(await store.get('total')).toMatchObject({ modRevision: 202, createRevision: 2 })
    expect(text((await store.list({ prefix: 'total', atRevision: 100 })).entries[0])).toBe('1')
    await Promise.all([add('k/a', false), add('k/b', true), add('k/c', true), add('k/d', false)])
    expect(
      events
        .filter(({ key }) => key === 'total')
        .map(formatEvent)
        .slice(1),
    ).toEqual(['put total@204=102<101', 'put total@210=105<102'])
    await store.close()
    const reopenedStore = await open()
    expect(reopenedStore.revision).toBe(210)
    const replay = collectEvents(reopenedStore, { afterRevision: 0 })
    await waitUntil(() => replay.watch.revision === 210)
    expect(replay.events.filter(({ key }) => key === 'total').map(formatEvent)).toEqual([
      'put total@2=1',
      'put total@202=101<1',
      'put total@204=102<101',
      'put total@210=105<102',
    ])
  })

  it('encodes a coalescable put only if it is kept or read, and passes the put itself to the next transaction', async () => {
    const { store } = await setUp()
    await put(store, 'total')
    let encodings = 0
    class Total {
      readonly put = 'total'
      readonly isCoalescable = true
      readonly sum: number
      constructor(sum: number) {
        this.sum = sum
      }
      get value() {
        encodings++
        return bytes(String(this.sum))
      }
    }
    const { events } = collectEvents(store)
    const add = () =>
      store.transact((view) => {
        const { coalescablePut } = view.get('total') ?? {}
        return [new Total(coalescablePut instanceof Total ? coalescablePut.sum + 1 : 1)]
      })
    await Promise.all(Array.from({ length: 50 }, add))
    expect(encodings).toBe(1)
    expect(text(await store.get('total'))).toBe('50')
    expect(events.map(formatEvent)).toEqual(['put total@51=50<total'])
    expect(events[0]?.entry?.coalescablePut).toBeUndefined()
    const reads: { text?: string | undefined; coalescable?: unknown }[] = []
    const readTotal = () =>
      store.transact((view) => {
        const entry = view.get('total')
        reads.push({ text: text(entry), coalescable: entry?.coalescablePut })
        return []
      })
    await Promise.all([add(), readTotal()])
    await readTotal()
    expect(reads).toEqual([
      { text: '1', coalescable: expect.any(Total) },
      { text: '1', coalescable: undefined },
    ])
  })

  it('keeps coalescable puts that create their key or precede its delete', async () => {
    const { store } = await setUp()
    const { events } = collectEvents(store)
    const putTotal = (value: string) => store.transact(() => [{ put: 'n', value: bytes(value), isCoalescable: true }])
    await Promise.all([putTotal('1'), putTotal('2'), putTotal('3'), remove(store, 'n'), putTotal('4'), putTotal('5')])
    expect(events.map(formatEvent)).toEqual(['put n@1=1', 'put n@3=3<1', 'delete n@4<3', 'put n@5=4', 'put n@6=5<4'])
  })

  it('coalesces puts that create their key if they allow it, also after a delete', async () => {
    const { store, batches } = await setUp()
    const { events } = collectEvents(store)
    const putTotal = (value: string) =>
      store.transact(() => [{ put: 'n', value: bytes(value), isCoalescable: true, isCreationCoalescable: true }])
    await Promise.all([putTotal('1'), putTotal('2'), putTotal('3'), remove(store, 'n'), putTotal('4'), putTotal('5')])
    expect(events.map(formatEvent)).toEqual(['put n@3=3', 'delete n@4<3', 'put n@6=5'])
    expect(batches[0]?.append.map(({ revision, createRevision }) => [revision, createRevision])).toEqual([
      [3, 3],
      [4, 3],
      [6, 6],
    ])
  })

  it('settles a transaction that reads from the batch only after the batch is durable', async () => {
    const { control, batches, store } = await setUp()
    const gate = createGate()
    control.beforeWrite = gate.wait
    const settledNames: string[] = []
    const pendingPut = put(store, 'a').then(() => settledNames.push('writer'))
    const pendingRead = store.transact((view) => (view.get('a') ? [] : [])).then(() => settledNames.push('reader'))
    const pendingThrow = store
      .transact((view) => {
        throw new Error(`there is ${view.get('a')?.key}`)
      })
      .catch(() => settledNames.push('thrower'))
    await waitUntil(() => batches.length === 1)
    expect(settledNames).toEqual([])
    gate.open()
    await Promise.all([pendingPut, pendingRead, pendingThrow])
    expect(settledNames.sort()).toEqual(['reader', 'thrower', 'writer'])
  })

  it('rejects transactions beyond the limit with StoreBusyError', async () => {
    const { control, batches, store } = await setUp()
    const gate = createGate()
    control.beforeWrite = gate.wait
    const pendingPut = put(store, 'a')
    await waitUntil(() => batches.length === 1)
    const waitingTransactions = Array.from({ length: PENDING_MAX }, () => store.transact(() => []))
    await expect(put(store, 'b')).rejects.toThrow(StoreBusyError)
    gate.open()
    await Promise.all([pendingPut, ...waitingTransactions])
    expect(await put(store, 'b')).toBe(2)
  })
})

describe('an entry that several transactions read', () => {
  async function setUpReads(transformer?: ValueTransformer) {
    const memory = memoryMedium()
    const readRevisions: number[] = []
    const medium: Medium = {
      ...memory,
      read: (revision) => {
        readRevisions.push(revision)
        return memory.read(revision)
      },
    }
    const clock = manualClock()
    const store = await openRevisionedStore({ medium, clock, ...(transformer ? { transformer } : {}) })
    const readValues: (string | undefined)[] = []
    const readAndPut = (key: string) =>
      store.transact((view) => {
        readValues.push(text(view.get('namespace')))
        return [{ put: key, value: bytes('value') }]
      })
    return { clock, store, readRevisions, readValues, readAndPut }
  }

  it('is read from the medium once, and again after it has changed', async () => {
    const { store, readRevisions, readValues, readAndPut } = await setUpReads()
    await put(store, 'namespace', 'old')
    for (const key of ['a', 'b', 'c']) await readAndPut(key)
    await put(store, 'namespace', 'new')
    for (const key of ['d', 'e']) await readAndPut(key)
    expect(readValues).toEqual(['old', 'old', 'old', 'new', 'new'])
    expect(readRevisions).toEqual([1, 5])
  })

  it('is released after a minute without a transaction that reads it', async () => {
    const { clock, store, readRevisions, readAndPut } = await setUpReads()
    await put(store, 'namespace', 'value')
    await readAndPut('a')
    await clock.advance(60_000)
    await readAndPut('b')
    expect(readRevisions).toEqual([1, 1])
  })

  it('is not read from the medium after a watcher has received it', async () => {
    const { store, readRevisions, readValues, readAndPut } = await setUpReads()
    collectEvents(store, { prefix: 'name' })
    await put(store, 'namespace', 'old')
    await readAndPut('a')
    await put(store, 'namespace', 'new')
    await readAndPut('b')
    await remove(store, 'namespace')
    await readAndPut('c')
    expect(readValues).toEqual(['old', 'new', undefined])
    expect(readRevisions).toEqual([])
  })

  it('SYS-9 is stale after a change of the encryption key, also if a watcher has just received it', async () => {
    let isStale = false
    const { store } = await setUpReads({
      encode: (_key, value) => value,
      isTransformed: () => true,
      decode: (_key, stored) => stored,
      isStale: () => isStale,
    })
    collectEvents(store, { prefix: 'name' })
    await put(store, 'namespace', 'value')
    isStale = true
    await store.transact((view) => {
      expect(view.get('namespace')?.isStale).toBe(true)
      return []
    })
  })

  it('is not kept in memory if it is large', async () => {
    const { store, readRevisions, readAndPut } = await setUpReads()
    await put(store, 'namespace', 'x'.repeat(10_000))
    for (const key of ['a', 'b']) await readAndPut(key)
    expect(readRevisions).toEqual([1, 1])
  })
})

describe('a store whose medium rejects a write', () => {
  it('discards the write and continues with later ones', async () => {
    const { control, store, open } = await setUp()
    await put(store, 'a', 'old')
    const { events } = collectEvents(store)
    control.beforeWrite = throwDiskFull
    const results = await Promise.allSettled([put(store, 'a', 'new'), put(store, 'b')])
    for (const result of results) expect(result).toMatchObject({ reason: expect.any(WriteRejectedError) })
    expect(results[0]).toMatchObject({ reason: { message: 'nothing was written: the disk is full' } })
    expect(text(await store.get('a'))).toBe('old')
    expect(await store.get('b')).toBeUndefined()
    expect(store.revision).toBe(1)

    control.beforeWrite = async () => {}
    expect(await put(store, 'a', 'newer')).toBe(2)
    expect(events.map(formatEvent)).toEqual(['put a@2=newer<old'])
    await store.close()
    expect(text(await (await open()).get('a'))).toBe('newer')
  })

  it('reruns transactions that read from the rejected batch', async () => {
    const { control, store } = await setUp()
    control.beforeWrite = throwDiskFull
    const create = (key: string) =>
      store.transact((view) => {
        if (view.get(key)) throw new Error(`${key} exists`)
        return [{ put: key, value: bytes(key) }]
      })
    const observedStates: boolean[] = []
    const readA = () =>
      store.transact((view) => {
        observedStates.push(view.get('a') !== undefined)
        return []
      })
    const results = await Promise.allSettled([create('a'), create('a'), readA()])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    for (const result of results.slice(0, 2)) expect(result).toMatchObject({ reason: expect.any(WriteRejectedError) })
    expect(observedStates).toEqual([true, true, false]) // the second create, the read, and the rerun of the read
    expect(results[2]).toMatchObject({ value: { revision: 0 } })
  })

  it('SYS-11 reports a problem until a write succeeds', async () => {
    const { control, store } = await setUp()
    expect(await store.problem?.()).toBeUndefined()
    const succeed = control.beforeWrite
    control.beforeWrite = throwDiskFull
    await expect(put(store, 'a')).rejects.toThrow(WriteRejectedError)
    expect(await store.problem?.()).toBe('the last write failed')
    control.beforeWrite = succeed
    expect(await store.problem?.()).toBe('the last write failed')
    await put(store, 'a')
    expect(await store.problem?.()).toBeUndefined()
  })

  it('SYS-11 probes the medium when problem() is called 10 s after the last write', async () => {
    const { clock, control, batches, store } = await setUp()
    const succeed = control.beforeWrite
    control.beforeWrite = throwDiskFull
    await expect(put(store, 'a')).rejects.toThrow(WriteRejectedError)
    const isHealthyAfter = async (ms: number) => {
      await clock.advance(ms)
      await store.problem?.()
      await clock.nextTurn()
      return (await store.problem?.()) === undefined
    }
    expect(await isHealthyAfter(9_999)).toBe(false)
    expect(batches).toHaveLength(1)
    expect(await isHealthyAfter(1)).toBe(false)
    expect(batches).toHaveLength(2)
    control.beforeWrite = succeed
    expect(await isHealthyAfter(9_999)).toBe(false)
    expect(await isHealthyAfter(1)).toBe(true)
    expect([batches.length, store.revision]).toEqual([3, 0])
  })

  it('retries compaction', async () => {
    const { clock, control, batches, store, open } = await setUp({ keepMs: 1_000 })
    await put(store, 'a', '1')
    await put(store, 'a', '2')
    await remove(store, 'a')
    control.beforeWrite = throwDiskFull
    await advanceUntil(clock, () => batches.some(({ drop }) => drop.length > 0))
    control.beforeWrite = async () => {}
    const batchesWithDrops = () => batches.filter(({ drop }) => drop.length > 0)
    await advanceUntil(clock, () => batchesWithDrops().length === 2)
    expect(batchesWithDrops()[1]?.drop).toEqual(batchesWithDrops()[0]?.drop)
    await store.close()
    const reopenedStore = await open()
    expect(reopenedStore.stats()).toMatchObject({ keys: 0, historyEntries: 0, revision: 3 })
  })

  it('retries the deletion of expired keys', async () => {
    const { clock, control, store } = await setUp()
    await store.transact(() => [{ put: 'a', value: bytes(''), expiresAtMs: clock.nowMs() + 1_000 }])
    let rejections = 0
    control.beforeWrite = async () => {
      if (rejections++ < 3) await throwDiskFull()
    }
    await advanceUntil(clock, () => store.stats().keys === 0)
    expect(rejections).toBe(4)
  })
})

describe('a store after a write with unknown outcome', () => {
  it('closes, ends its watchers and rejects pending transactions', async () => {
    const { control, batches, store, open } = await setUp()
    await put(store, 'a', 'old')
    const { events, endReasons } = collectEvents(store)
    const gate = createGate()
    control.beforeWrite = async () => {
      await gate.wait()
      throw new Error('input/output error')
    }
    const pendingPut = put(store, 'a', 'new')
    await waitUntil(() => batches.length === 2)
    const waitingPut = put(store, 'b')
    gate.open()
    for (const result of await Promise.allSettled([pendingPut, waitingPut])) {
      expect(result).toMatchObject({ reason: expect.any(StoreClosedError) })
      expect(result).toMatchObject({ reason: { message: expect.stringContaining('input/output error') } })
    }
    await expect(store.get('a')).rejects.toThrow(StoreClosedError)
    await waitUntil(() => endReasons.length > 0)
    expect(endReasons).toEqual([expect.any(StoreClosedError)])
    expect(events).toEqual([])
    await store.close()

    control.beforeWrite = async () => {}
    const reopenedStore = await open()
    expect(text(await reopenedStore.get('a'))).toBe('old')
  })
})

describe('compaction', () => {
  it('keeps the history bounded under load, by dropping a bounded number of records with a batch', async () => {
    const { batches, store } = await setUp({ entriesMax: 100 })
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 1_000 }, (_, index) => put(store, `k/${index}`, String(round))))
    }
    expect(Math.max(...batches.map(({ drop }) => drop.length))).toBeLessThanOrEqual(2_000)
    expect(store.stats().historyEntries).toBeLessThanOrEqual(1_100)
  })
})

describe('expiry', () => {
  it('keeps a key that is renewed while its deletion is pending', async () => {
    const { clock, control, batches, store } = await setUp()
    await store.transact(() => [{ put: 'a', value: bytes('old'), expiresAtMs: clock.nowMs() + 1_000 }])
    const gate = createGate()
    control.beforeWrite = gate.wait
    const blockingPut = put(store, 'other')
    await waitUntil(() => batches.length === 2)
    const renewingPut = put(store, 'a', 'renewed')
    await clock.advance(2_000) // queues the deletion after the renewal
    gate.open()
    await Promise.all([blockingPut, renewingPut])
    await store.transact(() => [])
    expect(text(await store.get('a'))).toBe('renewed')
    expect(store.revision).toBe(3)
  })
})
