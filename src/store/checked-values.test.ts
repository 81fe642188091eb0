import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import type { Medium } from './medium.ts'
import { memoryMedium, openMemoryStore } from './memory.ts'
import { DamagedRecordError, type Revision, type Store } from './store.ts'
import { collectEvents, put, remove, text, waitUntil } from './testing/store.fixture.ts'

/** Opens a store on a medium that returns a flipped bit or no bytes for some revisions. */
async function openDamagedStore(): Promise<{
  store: Store
  flipped: Set<Revision>
  lost: Set<Revision>
  reported: DamagedRecordError[]
}> {
  const flipped = new Set<Revision>()
  const lost = new Set<Revision>()
  const reported: DamagedRecordError[] = []
  const medium = memoryMedium()
  const damagedMedium: Medium = {
    ...medium,
    read(revision) {
      if (lost.has(revision)) return undefined
      const value = medium.read(revision)
      if (!value || !flipped.has(revision)) return value
      const copy = Uint8Array.from(value)
      copy[copy.length - 1]! ^= 1
      return copy
    },
  }
  const store = await openMemoryStore({
    clock: manualClock(),
    medium: damagedMedium,
    onDamage: (error) => void reported.push(error),
  })
  return { store, flipped, lost, reported }
}

const MISMATCH = 'the record of a at revision 1 is damaged: the checksum of its value does not match'

describe('a damaged record', () => {
  it('SYS-20 fails the reads of its value, and no other reads', async () => {
    const { store, flipped, lost, reported } = await openDamagedStore()
    for (const key of ['a', 'b', 'c']) await put(store, key)
    flipped.add(1)
    lost.add(3)
    const damagedEntry = await store.get('a')
    expect(damagedEntry).toMatchObject({ key: 'a', modRevision: 1, createRevision: 1 })
    expect(() => damagedEntry?.value).toThrow(DamagedRecordError)
    expect(() => damagedEntry?.value).toThrow(MISMATCH)
    expect(text(await store.get('b'))).toBe('b')
    const { entries } = await store.list({ prefix: '' })
    expect(entries.map(({ key }) => key)).toEqual(['a', 'b', 'c'])
    expect(() => entries[0]?.value).toThrow(MISMATCH)
    expect(() => entries[2]?.value).toThrow('the record of c at revision 3 is damaged: its value is missing')
    expect(text(entries[1])).toBe('b')
    expect(store.stats().damagedRecords).toBe(2)
    expect(store.damagedRecords?.().map(({ key }) => key)).toEqual(['a', 'c'])
    expect(reported).toHaveLength(2)
  })

  it('SYS-20 fails a transaction that reads its value', async () => {
    const { store, flipped } = await openDamagedStore()
    await put(store, 'a')
    flipped.add(1)
    const append = store.transact((view) => [{ put: 'a', value: Buffer.concat([view.get('a')!.value]) }])
    await expect(append).rejects.toThrow(MISMATCH)
    expect(store.revision).toBe(1)
    expect(store.stats().damagedRecords).toBe(1)
  })

  it('SYS-20 ends a watch that replays it, with the error', async () => {
    const { store, flipped } = await openDamagedStore()
    await put(store, 'a')
    await put(store, 'b')
    flipped.add(1)
    const values: string[] = []
    const reasons: Error[] = []
    store.watch({
      prefix: '',
      afterRevision: 0,
      onEvents: (events) => void values.push(...events.map(({ entry }) => text(entry) as string)),
      onEnd: (reason) => void reasons.push(reason),
    })
    await waitUntil(() => reasons.length > 0)
    expect(values).toEqual([])
    expect(reasons[0]).toBeInstanceOf(DamagedRecordError)
    expect(reasons[0]?.message).toBe(MISMATCH)
    expect(collectEvents(store).endReasons).toEqual([])
    await remove(store, 'b')
  })
})
