// Tests inspection, planning and repair of a damaged LMDB store together, on real files.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { copyLmdbStore } from './files/lmdb-copy.ts'
import { openLmdbStore } from './lmdb.ts'
import { repairStore } from './lmdb-repair.ts'
import { inspectStore, isDamaged, readRecords } from './records/inspect-store.ts'
import { planRepair, type RepairPlan } from './records/plan-repair.ts'
import type { RevisionRange } from './records/record-codec.ts'
import { CompactedError, type Store } from './store.ts'
import { put, remove, text } from './testing/store.fixture.ts'

const clock = manualClock()
let dir: string
let path: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-repair-'))
  path = join(dir, 'store.mdb')
})
afterEach(() => rm(dir, { recursive: true, force: true }))

async function writeToStore(change: (store: Store) => Promise<unknown>): Promise<void> {
  const store = await openLmdbStore({ dir, clock })
  await change(store)
  await store.close()
}

/** Flips a bit of the first byte of every occurrence of the marker in the file. */
async function damageFile(marker: string): Promise<void> {
  const bytes = await readFile(path)
  let occurrences = 0
  for (let offset = bytes.indexOf(marker); offset >= 0; offset = bytes.indexOf(marker, offset + 1)) {
    bytes[offset]! ^= 1
    occurrences++
  }
  expect(occurrences).toBeGreaterThan(0)
  await writeFile(path, bytes)
}

const readValues = async (store: Store) =>
  Object.fromEntries((await store.list({ prefix: '' })).entries.map((entry) => [entry.key, text(entry)]))

async function repairAndReadValues(plan: RepairPlan | undefined): Promise<Record<string, string | undefined>> {
  await repairStore(dir, plan as RepairPlan)
  const inspection = inspectStore({ path })
  expect(isDamaged(inspection)).toBe(false)
  expect(planRepair(path, {})).toBeUndefined()
  const store = await openLmdbStore({ dir, clock })
  const foundValues = await readValues(store)
  await put(store, 'later')
  await store.close()
  return foundValues
}

describe('inspectStore', () => {
  it('SYS-20 lists damaged values and headers with their keys', async () => {
    await writeToStore(async (store) => {
      for (const name of ['a', 'b', 'c']) await put(store, `k/${name}`, `<value of ${name}>`)
    })
    expect(inspectStore({ path })).toMatchObject({
      records: 3,
      newestRevision: 3,
      damagedRecords: [],
      damagedPages: [],
    })
    await damageFile('<value of a>')
    await damageFile('k/c')
    expect(inspectStore({ path })).toMatchObject({
      records: 1,
      damagedRecords: [
        { revision: 1, key: 'k/a', reason: 'the checksum of its value does not match', hasValue: true },
        { revision: 3, key: 'j/c', reason: 'the checksum of its header does not match', hasValue: true },
      ],
    })
  })
})

describe('inspectStore of a store with damaged pages', () => {
  /** Overwrites every page that contains one of these keys. */
  async function damageHeaderPage(...keys: string[]): Promise<void> {
    const bytes = await readFile(path)
    for (const key of keys) {
      for (let offset = bytes.indexOf(key); offset >= 0; offset = bytes.indexOf(key, offset + 1)) {
        bytes.fill(0, offset - (offset % 4_096), offset - (offset % 4_096) + 4_096)
      }
    }
    await writeFile(path, bytes)
  }

  it('SYS-20 finds the revisions of lost headers by their values, and reports no missing record', async () => {
    await writeToStore((store) =>
      store.transact(() => Array.from({ length: 400 }, (_, n) => ({ put: `k/${n}.`, value: Buffer.from('x') }))),
    )
    await damageHeaderPage('k/200.')
    const { damagedPages, damagedRecords, missingRecords, records } = inspectStore({ path })
    expect(damagedPages.length).toBeGreaterThan(0)
    expect(damagedRecords.map(({ revision }) => revision)).toContain(201)
    expect(records + damagedRecords.length).toBe(400)
    expect(missingRecords).toEqual({ countMax: 0, revisions: [] })
  })

  it('SYS-20 returns a range of revisions that contains the lost deletes, which have no value', async () => {
    await writeToStore(async (store) => {
      await store.transact(() => Array.from({ length: 400 }, (_, n) => ({ put: `k/${n}.`, value: Buffer.from('x') })))
      await store.transact(() => Array.from({ length: 400 }, (_, n) => ({ delete: `k/${n}.` })))
      await put(store, 'last')
    })
    const intactFile = await readFile(path)
    await damageHeaderPage('k/200.')
    const { records, damagedRecords, missingRecords } = inspectStore({ path })
    expect(missingRecords.countMax).toBe(801 - records - damagedRecords.length)
    expect(missingRecords.countMax).toBeGreaterThan(0)
    const isInRange = ({ first, last = Number.POSITIVE_INFINITY }: RevisionRange) => first <= 601 && 601 <= last
    expect(missingRecords.revisions.some(isInRange)).toBe(true) // the delete of k/200.
    await writeFile(path, intactFile)
    expect(inspectStore({ path }).missingRecords).toEqual({ countMax: 0, revisions: [] })
  })
})

describe('repair', () => {
  it('SYS-20 drops a damaged record, keeps the others and the damaged file, and does not reuse revisions', async () => {
    await writeToStore(async (store) => {
      await put(store, 'a', '<value of a>')
      await put(store, 'b')
    })
    await damageFile('<value of a>')
    const plan = planRepair(path, {})
    expect(plan?.actions).toEqual([
      { is: 'dropped', revision: 1, key: 'a', reason: 'the checksum of its value does not match' },
    ])
    expect(await repairAndReadValues(plan)).toEqual({ b: 'b' })
    expect((await readdir(dir)).sort()).toEqual(['store.mdb', 'store.mdb-lock', 'store.mdb.damaged-1'])
    const store = await openLmdbStore({ dir, clock })
    expect(store.revision).toBeGreaterThan(1_000_000)
    await expect(store.list({ prefix: '', atRevision: 2 })).rejects.toThrow(CompactedError)
    await store.close()
  })

  it('SYS-20 reverts an object to an earlier state from the history', async () => {
    await writeToStore(async (store) => {
      await put(store, 'a', 'old')
      await put(store, 'a', '<new value>')
    })
    await damageFile('<new value>')
    const plan = planRepair(path, {})
    expect(plan?.actions).toMatchObject([{ is: 'reverted', key: 'a', from: { revision: 1, isBackup: false } }])
    expect(await repairAndReadValues(plan)).toEqual({ a: 'old' })
  })

  it('SYS-20 restores records from a backup: the same revision, or an earlier one', async () => {
    const backupDir = join(dir, 'backup')
    await writeToStore(async (store) => {
      await put(store, 'a', '<value of a>')
      await put(store, 'b', 'old b')
    })
    await copyLmdbStore({ sourceDir: dir, targetDir: backupDir })
    const clearHistory = { keepMs: 1, entriesMax: 0 }
    const store = await openLmdbStore({ dir, clock, history: clearHistory })
    await put(store, 'b', '<new b>')
    await clock.advance(60_000)
    await store.close()
    await damageFile('<value of a>')
    await damageFile('<new b>')
    const plan = planRepair(path, { backup: readRecords(join(backupDir, 'store.mdb')) })
    expect(plan?.actions).toMatchObject([
      { is: 'restored', key: 'a', revision: 1 },
      { is: 'reverted', key: 'b', revision: 3, from: { revision: 2 } },
    ])
    expect(await repairAndReadValues(plan)).toEqual({ a: '<value of a>', b: 'old b' })
  })

  it('SYS-20 does not recreate an object whose delete is damaged', async () => {
    await writeToStore(async (store) => {
      await put(store, 'k/deleted')
      await put(store, 'k/other')
      await remove(store, 'k/deleted')
    })
    const bytes = await readFile(path)
    for (let place = bytes.indexOf('k/deleted'); place >= 0; place = bytes.indexOf('k/deleted', place + 1)) {
      // Flip a bit of the create revision in the header of the delete, which has the flag of a delete.
      if (bytes[place - 29] === 1) bytes[place - 20]! ^= 1
    }
    await writeFile(path, bytes)
    const plan = planRepair(path, {})
    expect(plan?.actions).toMatchObject([{ is: 'dropped', revision: 3, key: 'k/deleted' }])
    expect(await repairAndReadValues(plan)).toEqual({ 'k/other': 'k/other' })
  })

  it('SYS-20 keeps the records of all intact pages', async () => {
    await writeToStore((store) =>
      store.transact(() =>
        Array.from({ length: 300 }, (_, n) => ({ put: `k/${n}`, value: Buffer.alloc(700, `${n} `) })),
      ),
    )
    const bytes = await readFile(path)
    bytes.fill(0, bytes.indexOf('150 150 150 ') & ~4_095, (bytes.indexOf('150 150 150 ') & ~4_095) + 4_096)
    await writeFile(path, bytes)
    await expect(openLmdbStore({ dir, clock })).rejects.toThrow('is damaged: page')
    const plan = planRepair(path, {})
    expect(plan?.inspection.damagedPages.length).toBeGreaterThan(0)
    expect(plan?.actions.map(({ key }) => key)).toContain('k/150')
    const foundValues = await repairAndReadValues(plan)
    expect(Object.keys(foundValues).length).toBe(300 - (plan?.actions.length ?? 0))
  })
})
