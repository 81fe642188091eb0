// What the contract cannot show: the store while a write is under way, and when its medium fails.
import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { AppendRefusedError, type Medium, type MediumBatch } from './medium.ts'
import { memoryMedium } from './memory.ts'
import { openRevisionedStore, WAITING_MAX } from './revisioned-store.ts'
import { type HistoryOptions, StoreBusyError, StoreClosedError, WriteRefusedError } from './store.ts'
import { bytes, collect, passTimeUntil, put, remove, show, text, until } from './testing/helpers.ts'

/** A store whose medium does as it is told: `fate` is asked before, and may wait, let pass, or fail each write. */
async function setUp(history?: HistoryOptions) {
  const clock = manualClock()
  const memory = memoryMedium()
  const batches: MediumBatch[] = []
  const control = { fate: async (): Promise<void> => {} }
  const medium: Medium = {
    ...memory,
    async write(batch) {
      batches.push(batch)
      await control.fate()
      await memory.write(batch)
    },
  }
  const open = () => openRevisionedStore({ medium, clock, history })
  return { clock, control, batches, open, store: await open() }
}

const diskFull = async () => {
  throw new AppendRefusedError('the disk is full')
}

/** A gate that writes wait at. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, wait: () => opened }
}

describe('while a batch is being written', () => {
  it('SYS-1 nothing of it is readable or watched', async () => {
    const { control, batches, store } = await setUp()
    await put(store, 'a', 'old')
    const { events } = collect(store)
    const barrier = gate()
    control.fate = barrier.wait
    const writing = put(store, 'a', 'new')
    await until(() => batches.length === 2)

    expect(text(await store.get('a'))).toBe('old')
    expect(store.revision).toBe(1)
    expect((await store.list({ prefix: '' })).entries.map(text)).toEqual(['old'])
    expect(events).toEqual([])
    barrier.open()
    expect(await writing).toBe(2)
    expect(text(await store.get('a'))).toBe('new')
    expect(events.map(show)).toEqual(['put a@2=new<old'])
  })

  it('what comes meanwhile is the next batch, as a whole', async () => {
    const { control, batches, store } = await setUp()
    const barrier = gate()
    control.fate = barrier.wait
    const first = put(store, 'a')
    await until(() => batches.length === 1)
    const rest = Promise.all(['b', 'c', 'd'].map((key) => put(store, key)))
    barrier.open()
    expect([await first, ...(await rest)]).toEqual([1, 2, 3, 4])
    expect(batches.map(({ append }) => append.length)).toEqual([1, 3])
  })

  it('running totals that nobody could see are left out, and every transaction still built on the one before it', async () => {
    const { batches, store, open } = await setUp()
    const add = (key: string, isPassing: boolean) =>
      store.transact((view) => {
        const total = String(Number(text(view.get('total')) ?? 0) + 1)
        return [
          { put: key, value: bytes(key) },
          { put: 'total', value: bytes(total), isPassing },
        ]
      })
    await add('k/first', true)
    const { events } = collect(store)
    const revisions = await Promise.all(Array.from({ length: 100 }, (_, at) => add(`k/${at}`, true)))
    expect(revisions.map(({ revision }) => revision)).toEqual(Array.from({ length: 100 }, (_, at) => 4 + 2 * at))
    expect(events.filter(({ key }) => key === 'total').map(show)).toEqual(['put total@202=101<1'])
    expect(events).toHaveLength(101)
    expect(batches.at(-1)?.append).toHaveLength(101)
    expect(await store.get('total')).toMatchObject({ modRevision: 202, createRevision: 2 })
    expect(text((await store.list({ prefix: 'total', atRevision: 100 })).entries[0])).toBe('1')
    await Promise.all([add('k/a', false), add('k/b', true), add('k/c', true), add('k/d', false)])
    expect(
      events
        .filter(({ key }) => key === 'total')
        .map(show)
        .slice(1),
    ).toEqual(['put total@204=102<101', 'put total@210=105<102'])
    await store.close()
    const reopened = await open()
    expect(reopened.revision).toBe(210)
    const replay = collect(reopened, { afterRevision: 0 })
    await until(() => replay.watch.revision === 210)
    expect(replay.events.filter(({ key }) => key === 'total').map(show)).toEqual([
      'put total@2=1',
      'put total@202=101<1',
      'put total@204=102<101',
      'put total@210=105<102',
    ])
  })

  it('the bytes of a running total are made only for what is kept, and who comes next sees the total itself', async () => {
    const { store } = await setUp()
    await put(store, 'total')
    let made = 0
    class Total {
      readonly put = 'total'
      readonly isPassing = true
      readonly sum: number
      constructor(sum: number) {
        this.sum = sum
      }
      get value() {
        made++
        return bytes(String(this.sum))
      }
    }
    const { events } = collect(store)
    const add = () =>
      store.transact((view) => {
        const { passing } = view.get('total') ?? {}
        return [new Total(passing instanceof Total ? passing.sum + 1 : 1)]
      })
    await Promise.all(Array.from({ length: 50 }, add))
    expect(made).toBe(1)
    expect(text(await store.get('total'))).toBe('50')
    expect(events.map(show)).toEqual(['put total@51=50<total'])
    expect(events[0]?.entry?.passing).toBeUndefined()
    const seen: { text?: string | undefined; passing?: unknown }[] = []
    const look = () =>
      store.transact((view) => {
        const entry = view.get('total')
        seen.push({ text: text(entry), passing: entry?.passing })
        return []
      })
    await Promise.all([add(), look()])
    await look()
    expect(seen).toEqual([
      { text: '1', passing: expect.any(Total) },
      { text: '1', passing: undefined },
    ])
  })

  it('running totals that create their key, or come after its end, are told', async () => {
    const { store } = await setUp()
    const { events } = collect(store)
    const total = (value: string) => store.transact(() => [{ put: 'n', value: bytes(value), isPassing: true }])
    await Promise.all([total('1'), total('2'), total('3'), remove(store, 'n'), total('4'), total('5')])
    expect(events.map(show)).toEqual(['put n@1=1', 'put n@3=3<1', 'delete n@4<3', 'put n@5=4', 'put n@6=5<4'])
  })

  it('a transaction that only saw part of it waits until that is durable', async () => {
    const { control, batches, store } = await setUp()
    const barrier = gate()
    control.fate = barrier.wait
    const settled: string[] = []
    const writing = put(store, 'a').then(() => settled.push('writer'))
    const looking = store.transact((view) => (view.get('a') ? [] : [])).then(() => settled.push('reader'))
    const throwing = store
      .transact((view) => {
        throw new Error(`there is ${view.get('a')?.key}`)
      })
      .catch(() => settled.push('thrower'))
    await until(() => batches.length === 1)
    expect(settled).toEqual([])
    barrier.open()
    await Promise.all([writing, looking, throwing])
    expect(settled.sort()).toEqual(['reader', 'thrower', 'writer'])
  })

  it('so many may wait, and no more', async () => {
    const { control, batches, store } = await setUp()
    const barrier = gate()
    control.fate = barrier.wait
    const writing = put(store, 'a')
    await until(() => batches.length === 1)
    const waiting = Array.from({ length: WAITING_MAX }, () => store.transact(() => []))
    await expect(put(store, 'b')).rejects.toThrow(StoreBusyError)
    barrier.open()
    await Promise.all([writing, ...waiting])
    expect(await put(store, 'b')).toBe(2)
  })
})

describe('a medium that refuses a write', () => {
  it('leaves nothing visible, and the store goes on', async () => {
    const { control, store, open } = await setUp()
    await put(store, 'a', 'old')
    const { events } = collect(store)
    control.fate = diskFull
    const results = await Promise.allSettled([put(store, 'a', 'new'), put(store, 'b')])
    for (const result of results) expect(result).toMatchObject({ reason: expect.any(WriteRefusedError) })
    expect(results[0]).toMatchObject({ reason: { message: 'nothing was written: the disk is full' } })
    expect(text(await store.get('a'))).toBe('old')
    expect(await store.get('b')).toBeUndefined()
    expect(store.revision).toBe(1)

    control.fate = async () => {}
    expect(await put(store, 'a', 'newer')).toBe(2)
    expect(events.map(show)).toEqual(['put a@2=newer<old'])
    await store.close()
    expect(text(await (await open()).get('a'))).toBe('newer')
  })

  it('lets those look again who saw what was refused', async () => {
    const { control, store } = await setUp()
    control.fate = diskFull
    const create = (key: string) =>
      store.transact((view) => {
        if (view.get(key)) throw new Error(`${key} exists`)
        return [{ put: key, value: bytes(key) }]
      })
    const saw: boolean[] = []
    const look = () =>
      store.transact((view) => {
        saw.push(view.get('a') !== undefined)
        return []
      })
    const results = await Promise.allSettled([create('a'), create('a'), look()])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    for (const result of results.slice(0, 2)) expect(result).toMatchObject({ reason: expect.any(WriteRefusedError) })
    expect(saw).toEqual([true, true, false]) // the first a, the second a, none
    expect(results[2]).toMatchObject({ value: { revision: 0 } })
  })

  it('SYS-11 is said to be unwell until it takes a write', async () => {
    const { control, store } = await setUp()
    expect(await store.problem?.()).toBeUndefined()
    const takeIt = control.fate
    control.fate = diskFull
    await expect(put(store, 'a')).rejects.toThrow(WriteRefusedError)
    expect(await store.problem?.()).toBe('the last write was refused')
    control.fate = takeIt
    expect(await store.problem?.()).toBe('the last write was refused')
    await put(store, 'a')
    expect(await store.problem?.()).toBeUndefined()
  })

  it('SYS-11 is tried now and then where nobody writes because it is unwell', async () => {
    const { clock, control, batches, store } = await setUp()
    const takeIt = control.fate
    control.fate = diskFull
    await expect(put(store, 'a')).rejects.toThrow(WriteRefusedError)
    const wellAfter = async (ms: number) => {
      await clock.advance(ms)
      await store.problem?.()
      await clock.nextTurn()
      return (await store.problem?.()) === undefined
    }
    expect(await wellAfter(9_999)).toBe(false)
    expect(batches).toHaveLength(1)
    expect(await wellAfter(1)).toBe(false)
    expect(batches).toHaveLength(2)
    control.fate = takeIt
    expect(await wellAfter(9_999)).toBe(false)
    expect(await wellAfter(1)).toBe(true)
    expect([batches.length, store.revision]).toEqual([3, 0])
  })

  it('is asked again to drop old records', async () => {
    const { clock, control, batches, store, open } = await setUp({ keepMs: 1_000 })
    await put(store, 'a', '1')
    await put(store, 'a', '2')
    await remove(store, 'a')
    control.fate = diskFull
    await passTimeUntil(clock, () => batches.some(({ drop }) => drop.length > 0))
    control.fate = async () => {}
    const dropping = () => batches.filter(({ drop }) => drop.length > 0)
    await passTimeUntil(clock, () => dropping().length === 2)
    expect(dropping()[1]?.drop).toEqual(dropping()[0]?.drop)
    await store.close()
    const again = await open()
    expect(again.stats()).toMatchObject({ keys: 0, historyEntries: 0, revision: 3 })
  })

  it('is asked again to delete what has expired', async () => {
    const { clock, control, store } = await setUp()
    await store.transact(() => [{ put: 'a', value: bytes(''), expiresAtMs: clock.nowMs() + 1_000 }])
    let refused = 0
    control.fate = async () => {
      if (refused++ < 3) await diskFull()
    }
    await passTimeUntil(clock, () => store.stats().keys === 0)
    expect(refused).toBe(4)
  })
})

describe('a medium that fails without saying whether it wrote', () => {
  it('ends the store, its watchers, and all who wait', async () => {
    const { control, batches, store, open } = await setUp()
    await put(store, 'a', 'old')
    const { events, ended } = collect(store)
    const barrier = gate()
    control.fate = async () => {
      await barrier.wait()
      throw new Error('input/output error')
    }
    const writing = put(store, 'a', 'new')
    await until(() => batches.length === 2)
    const waiting = put(store, 'b')
    barrier.open()
    for (const result of await Promise.allSettled([writing, waiting])) {
      expect(result).toMatchObject({ reason: expect.any(StoreClosedError) })
      expect(result).toMatchObject({ reason: { message: expect.stringContaining('input/output error') } })
    }
    await expect(store.get('a')).rejects.toThrow(StoreClosedError)
    await until(() => ended.length > 0)
    expect(ended).toEqual([expect.any(StoreClosedError)])
    expect(events).toEqual([])
    await store.close()

    control.fate = async () => {}
    const again = await open()
    expect(text(await again.get('a'))).toBe('old')
  })
})

describe('compaction', () => {
  it('keeps pace with any load, a little with every batch', async () => {
    const { batches, store } = await setUp({ entriesMax: 100 })
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 1_000 }, (_, at) => put(store, `k/${at}`, String(round))))
    }
    expect(Math.max(...batches.map(({ drop }) => drop.length))).toBeLessThanOrEqual(2_000)
    expect(store.stats().historyEntries).toBeLessThanOrEqual(1_100)
  })
})

describe('expiry', () => {
  it('spares a key that is renewed at the last moment', async () => {
    const { clock, control, batches, store } = await setUp()
    await store.transact(() => [{ put: 'a', value: bytes('old'), expiresAtMs: clock.nowMs() + 1_000 }])
    const barrier = gate()
    control.fate = barrier.wait
    const busy = put(store, 'other')
    await until(() => batches.length === 2)
    const renewing = put(store, 'a', 'renewed')
    await clock.advance(2_000) // now the store wants to delete it, after the renewal
    barrier.open()
    await Promise.all([busy, renewing])
    await store.transact(() => [])
    expect(text(await store.get('a'))).toBe('renewed')
    expect(store.revision).toBe(3)
  })
})
