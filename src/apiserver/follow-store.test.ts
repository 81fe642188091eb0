import { afterEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { type HistoryOptions, openMemoryStore, type Store } from '../store/index.ts'
import { followStore } from './follow-store.ts'

const PREFIX = 'core/things/'
const keyOf = (number: number) => `${PREFIX}${String(number).padStart(5, '0')}`

let store: Store
const abort = new AbortController()
afterEach(() => store.close())

/** Opens a store with entries and follows it. Returns the options of each list request, and the keys that were passed to `onEntry`. */
async function follow(
  count: number,
  beforeList: (listCount: number) => Promise<unknown> = async () => {},
  history: HistoryOptions = {},
) {
  const clock = manualClock()
  store = await openMemoryStore({ clock, history })
  const value = new Uint8Array([1])
  await store.transact(() => Array.from({ length: count }, (_, number) => ({ put: keyOf(number), value })))
  const lists: Parameters<Store['list']>[0][] = []
  const list = store.list.bind(store)
  vi.spyOn(store, 'list').mockImplementation(async (options) => {
    lists.push(options)
    await beforeList(lists.length)
    return list(options)
  })
  const keys = new Set<string>()
  await followStore({
    store,
    prefix: PREFIX,
    description: 'things',
    clock,
    log: silentLog,
    signal: abort.signal,
    onEntry: (key, entry) => void (entry ? keys.add(key) : keys.delete(key)),
  })
  return { lists, keys }
}

describe('followStore', () => {
  it('loads many entries in pages, so that their values are not in memory together', async () => {
    const { lists, keys } = await follow(2_500)
    expect(keys.size).toBe(2_500)
    expect(lists.map(({ limit }) => limit)).toEqual(Array(10).fill(250))
  })

  it('requests no further page after the one that contains the last entry', async () => {
    const { lists, keys } = await follow(250)
    expect(keys.size).toBe(250)
    expect(lists).toHaveLength(1)
  })

  it('applies the changes that are made between two pages', async () => {
    const { keys } = await follow(1_500, async (lists) => {
      if (lists < 2) return
      await store.transact(() => [
        { delete: keyOf(0) },
        { delete: keyOf(1_499) },
        { put: keyOf(9_999), value: new Uint8Array([2]) },
      ])
    })
    await expect.poll(() => keys.has(keyOf(9_999))).toBe(true)
    expect(keys.has(keyOf(0))).toBe(false)
    expect(keys.has(keyOf(1_499))).toBe(false)
    expect(keys.size).toBe(1_499)
  })

  it('loads everything again if the revision of the first page is compacted before the last one', async () => {
    const compact = async (lists: number) => {
      if (lists === 2) for (const number of [0, 1_499]) await store.transact(() => [{ delete: keyOf(number) }])
    }
    const { lists, keys } = await follow(1_500, compact, { keepMs: 0, entriesMax: 0 })
    expect(lists.map(({ limit }) => limit)).toEqual([250, 250, undefined])
    expect(keys.has(keyOf(0))).toBe(false)
    expect(keys.size).toBe(1_498)
  })
})
