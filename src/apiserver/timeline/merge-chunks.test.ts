import { inflateRawSync } from 'node:zlib'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { type ManualClock, manualClock } from '../../base/manual-clock.ts'
import { openMemoryStore, type Store } from '../../store/index.ts'
import { createJournal } from './journal.ts'
import { CHUNKS_PREFIX, RECORD_AGE_MS_MAX, SEGMENTS_PREFIX } from './journal-keys.ts'
import type { JournalRecord } from './journal-record.ts'
import { type JournalLimits, limitRecords, maintainJournal, mergeChunks, mergeUnmerged } from './merge-chunks.ts'
import { readTimeline } from './read-timeline.ts'
import { UnmergedChunks } from './unmerged-chunks.ts'

const LIMITS: JournalLimits = { chunks: 10, volumeRecords: 200, bytes: 1_000_000, segments: 100 }
const MINUTE_MS = 60_000

let clock: ManualClock
let store: Store
beforeEach(async () => {
  clock = manualClock()
  store = await openMemoryStore({ clock })
})
afterEach(() => store.close())

const aChange = (
  name: string,
  verb: 'create' | 'update' | 'delete' = 'create',
  atMs = clock.nowMs(),
): JournalRecord => ({
  ...{
    atMs,
    kind: 'PersistentVolumeClaim',
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    verb,
    user: 'ann',
    changes: [],
  },
})

const chunkOf = (record: JournalRecord): Buffer => Buffer.from(`${JSON.stringify(record)}\n`)

async function putChunks(names: readonly string[], atMs = clock.nowMs()): Promise<void> {
  const puts = names.map((name, index) => ({
    put: `${CHUNKS_PREFIX}${name}-${String(index).padStart(4, '0')}`,
    value: chunkOf(aChange(name, 'create', atMs)),
    expiresAtMs: clock.nowMs() + RECORD_AGE_MS_MAX,
  }))
  await store.transact(() => puts)
}
const countEntries = async (prefix: string) => (await store.list({ prefix })).entries.length
const journal = (isStoreShared = false) => createJournal({ clock, random: () => 0, isStoreShared })
const namesOf = (count: number, prefix = 'c') => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const requestOf = (name: string) => ({ kind: 'PersistentVolumeClaim' as const, namespace: 'shop', name })

describe('mergeChunks', () => {
  it('PLUS-6 replaces chunks with a segment that has the same records', async () => {
    await putChunks(namesOf(10))
    expect(await mergeChunks(store, LIMITS)).toEqual({ droppedRecords: 0 })
    expect(await countEntries(CHUNKS_PREFIX)).toBe(0)
    expect(await countEntries(SEGMENTS_PREFIX)).toBe(1)
    const { uid, entries } = await readTimeline({ store, journal: journal() }, requestOf('c-7'))
    expect(uid).toBe('uid-c-7')
    expect(entries).toHaveLength(1)
  })

  it('PLUS-6 does not merge fewer chunks than the limit', async () => {
    await putChunks(namesOf(9))
    expect(await mergeChunks(store, LIMITS)).toBeUndefined()
    expect(await countEntries(CHUNKS_PREFIX)).toBe(9)
  })

  it('PLUS-6 gives a segment the age of its newest record, after which the store deletes it', async () => {
    await putChunks(namesOf(10), clock.nowMs() - RECORD_AGE_MS_MAX + 5 * MINUTE_MS)
    await mergeChunks(store, LIMITS)
    await clock.advance(4 * MINUTE_MS)
    expect(await countEntries(SEGMENTS_PREFIX)).toBe(1)
    await clock.advance(2 * MINUTE_MS)
    expect(await countEntries(SEGMENTS_PREFIX)).toBe(0)
  })

  it('PLUS-6 limits the records of each volume, and returns how many it dropped', async () => {
    const names = Array.from({ length: 10 }, () => 'busy')
    await putChunks(names)
    expect(await mergeChunks(store, { ...LIMITS, volumeRecords: 9 })).toEqual({ droppedRecords: 0 }) // creations are kept
    const updates = Array.from({ length: 8 }, (_, index) => aChange('busy', 'update', clock.nowMs() + index))
    const chunks = updates.map((update, index) => ({
      put: `${CHUNKS_PREFIX}z-${index}`,
      value: chunkOf(update),
    }))
    await store.transact(() => chunks)
    expect(await mergeChunks(store, { ...LIMITS, chunks: 8, volumeRecords: 5 })).toEqual({ droppedRecords: 3 })
  })

  it('PLUS-6 merges nothing if another server has merged the same chunks', async () => {
    await putChunks(namesOf(10))
    const results = await Promise.all([mergeChunks(store, LIMITS), mergeChunks(store, LIMITS)])
    expect(results.filter(Boolean)).toHaveLength(1)
    expect(await countEntries(SEGMENTS_PREFIX)).toBe(1)
  })
})

describe('mergeUnmerged', () => {
  /** Commits chunks as a journal does. */
  async function commit(chunks: UnmergedChunks, names: readonly string[], verb: 'create' | 'update' = 'create') {
    for (const [index, name] of names.entries()) {
      const key = `${CHUNKS_PREFIX}${verb}-${String(index).padStart(4, '0')}`
      const value = chunkOf(aChange(name, verb))
      await store.transact(() => [{ put: key, value }])
      chunks.countRecord(`uid-${name}`)
      chunks.add(key, value)
    }
  }

  it('PLUS-6 merges chunks without reading them, and leaves fewer than a merge needs', async () => {
    const chunks = new UnmergedChunks()
    await commit(chunks, namesOf(25))
    const reads: string[] = []
    const observed: Store = Object.assign(Object.create(store) as Store, {
      list: (options: Parameters<Store['list']>[0]) => {
        reads.push(options.prefix)
        return store.list(options)
      },
      transact: (decide: Parameters<Store['transact']>[0]) => store.transact(decide),
    })
    expect(await mergeUnmerged(observed, chunks, LIMITS)).toBe(0)
    expect(reads).toEqual([])
    expect(chunks.size).toBe(5)
    expect(await countEntries(CHUNKS_PREFIX)).toBe(5)
    expect(await countEntries(SEGMENTS_PREFIX)).toBe(2)
    for (const name of ['c-0', 'c-19', 'c-24'])
      expect((await readTimeline({ store, journal: journal() }, requestOf(name))).entries).toHaveLength(1)
  })

  it('PLUS-6 merges chunks that are next to each other in memory with the same records', async () => {
    const chunks = new UnmergedChunks()
    const values = namesOf(20).map((name) => chunkOf(aChange(name)))
    const block = Buffer.concat(values)
    let start = 0
    for (const [index, { length }] of values.entries()) {
      const key = `${CHUNKS_PREFIX}${String(index).padStart(4, '0')}`
      const value = block.subarray(start, start + length)
      start += length
      await store.transact(() => [{ put: key, value }])
      chunks.add(key, value)
    }
    await mergeUnmerged(store, chunks, LIMITS)
    expect(await countEntries(CHUNKS_PREFIX)).toBe(0)
    const segments = (await store.list({ prefix: SEGMENTS_PREFIX })).entries
    expect(segments.map(({ value }) => inflateRawSync(value).toString())).toEqual(
      [values.slice(0, 10), values.slice(10)].map((merged) => Buffer.concat(merged).toString()),
    )
  })

  it('PLUS-6 limits the records of each volume, and returns how many it dropped', async () => {
    const chunks = new UnmergedChunks()
    const names = Array.from({ length: 10 }, () => 'busy')
    await commit(chunks, names, 'update')
    expect(await mergeUnmerged(store, chunks, { ...LIMITS, volumeRecords: 8 })).toBe(2)
  })

  it('PLUS-6 limits the records of each volume also if they were added in several intervals', async () => {
    const chunks = new UnmergedChunks()
    const dropped: number[] = []
    for (const name of ['busy', 'busy', 'other']) {
      for (let index = 0; index < 5; index++) {
        const key = `${CHUNKS_PREFIX}${dropped.length}-${index}`
        const value = chunkOf(aChange(name, 'update', index))
        await store.transact(() => [{ put: key, value }])
        chunks.countRecord(`uid-${name}`)
        chunks.add(key, value)
      }
      dropped.push(await mergeUnmerged(store, chunks, { ...LIMITS, volumeRecords: 8 }))
    }
    expect(dropped).toEqual([0, 2, 0])
  })

  it('PLUS-6 drops chunks from memory that are no longer in the store, and reads the others from there', async () => {
    const chunks = new UnmergedChunks()
    await commit(chunks, namesOf(10))
    await store.transact(() => [{ delete: `${CHUNKS_PREFIX}create-0000` }])
    expect(await mergeUnmerged(store, chunks, LIMITS)).toBe(0)
    expect(chunks.size).toBe(0)
    expect(chunks.takeDropped()).toBe(true)
    expect(await countEntries(CHUNKS_PREFIX)).toBe(9)
  })

  it('SYS-19 keeps a bounded number of bytes', () => {
    const chunks = new UnmergedChunks()
    for (let index = 0; index < 10; index++) chunks.add(`k-${index}`, new Uint8Array(1024 * 1024))
    expect(chunks.size).toBe(1)
    expect(chunks.takeDropped()).toBe(true)
  })
})

describe('readTimeline', () => {
  it('PLUS-6 finds the records of a claim behind any number of chunks and segments', async () => {
    for (let round = 0; round < 55; round++) {
      await putChunks(namesOf(10, `r-${String(round).padStart(2, '0')}`))
      await mergeChunks(store, LIMITS)
    }
    await putChunks(namesOf(120, 'x'))
    for (const name of ['r-00-0', 'r-54-9', 'x-0', 'x-119']) {
      const { entries } = await readTimeline({ store, journal: journal() }, requestOf(name))
      expect(entries).toHaveLength(1)
    }
  })
})

describe('limitRecords', () => {
  it('PLUS-6 replaces the oldest records of a volume with their number, and keeps its creation and the records of other volumes', () => {
    const updates = Array.from({ length: 5 }, (_, index) => aChange('busy', 'update', index))
    const { records, droppedRecords } = limitRecords([aChange('busy'), aChange('idle'), ...updates], 3)
    expect(droppedRecords).toBe(3)
    expect(records).toEqual([
      aChange('busy'),
      aChange('idle'),
      ...updates.slice(3),
      { atMs: 2, dropped: 'uid-busy', count: 3 },
    ])
  })
})

describe('maintainJournal', () => {
  let abort: AbortController
  beforeEach(() => {
    abort = new AbortController()
  })
  afterEach(() => abort.abort())

  it('PLUS-6 merges the chunks of an earlier start', async () => {
    await putChunks(namesOf(10))
    const registry = new Registry()
    const options = { store, journal: journal(), clock, log: silentLog, registry, signal: abort.signal }
    await maintainJournal({ ...options, limits: LIMITS })
    await clock.advance(5_000)
    await untilAsync(async () => (await countEntries(SEGMENTS_PREFIX)) === 1)
    expect(await countEntries(CHUNKS_PREFIX)).toBe(0)
  })

  it('PLUS-6 deletes the oldest segments beyond the limit', async () => {
    const registry = new Registry()
    const options = { store, journal: journal(true), clock, log: silentLog, registry, signal: abort.signal }
    await maintainJournal({ ...options, limits: { ...LIMITS, segments: 2 } })
    for (const prefix of ['a', 'b', 'c']) {
      await putChunks(namesOf(10, prefix))
      const before = await countEntries(CHUNKS_PREFIX)
      expect(before).toBe(10)
      await clock.advance(MINUTE_MS)
      await untilAsync(async () => (await countEntries(CHUNKS_PREFIX)) === 0)
    }
    await clock.advance(MINUTE_MS)
    await untilAsync(async () => (await countEntries(SEGMENTS_PREFIX)) === 2)
    expect(await readTimeline({ store, journal: journal() }, requestOf('a-0'))).toEqual({ otherUids: [] })
    expect(await registry.metrics()).toMatch(/stowage_journal_dropped_total\{limit="total"\} 1/)
  })
})

/** Waits for work on other threads, such as compression. */
async function untilAsync(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(1_000)
  }
}
