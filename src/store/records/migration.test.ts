// Migrates a store of format 2, which version 0.1.0 wrote and test/releases keeps: 2,191 revisions of 700 ConfigMaps,
// deletes, expiring events and a value on overflow pages.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import type { Store } from '../store.ts'
import { advanceUntil, collectEvents, put, text, waitUntil } from '../testing/store.fixture.ts'
import type { MigrationProgress } from './migration.ts'

const RELEASES = join(import.meta.dirname, '../../../test/releases')
const clock = manualClock()
/** The options with which the store was written. */
const history = { brief: { prefixes: ['core/events/'], keepMs: 1_000, entriesMax: 5 } }
/** The time at which the 20 events of the store expire. */
const EVENTS_EXPIRE_MS = 4e12
const dirs: string[] = []
afterEach(async () => {
  await Promise.all(dirs.splice(0).map((dir) => rm(dir, { recursive: true, force: true })))
})

async function createDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-migration-'))
  dirs.push(dir)
  await writeFile(join(dir, 'store.mdb'), brotliDecompressSync(await readFile(join(RELEASES, 'store-format-2.mdb.br'))))
  return dir
}

async function expectContents(store: Store): Promise<void> {
  const { entries, revision } = await store.list({ prefix: '' })
  expect(revision).toBe(2_191)
  expect(entries).toHaveLength(671)
  for (const entry of entries.filter(({ key }) => !key.endsWith('/large'))) {
    const round = entry.key.startsWith('core/events/') ? '1' : '2'
    const [namespace, name] = entry.key.split('/').slice(2)
    expect(JSON.parse(text(entry) as string)).toEqual({ metadata: { name, namespace }, data: { round } })
  }
  expect((await store.get('core/configmaps/default/large'))?.value.length).toBe(24_011)
  const pastList = await store.list({ prefix: 'core/configmaps/default/c7', atRevision: 700 })
  expect(pastList.entries.map((entry) => JSON.parse(text(entry) as string).data.round)).toEqual(Array(11).fill('0'))
  const { events, watch } = collectEvents(store, { prefix: 'core/configmaps/', afterRevision: 700 })
  await waitUntil(() => watch.revision === store.revision)
  watch.close()
  expect(events).toHaveLength(1_451)
  expect(events.every(({ entry, previous }) => entry?.value.length !== 0 && previous?.value.length !== 0)).toBe(true)
  expect(store.stats().damagedRecords).toBe(0)
}

describe('migration from format 2', () => {
  it('SYS-28 keeps objects, history, deletes and expiry times, and reports its progress', async () => {
    const dir = await createDir()
    const reports: MigrationProgress[] = []
    const store = await openLmdbStore({ dir, clock, history, onMigration: (progress) => void reports.push(progress) })
    await expectContents(store)
    await put(store, 'new')
    await store.close()
    const lastReport = reports.at(-1)
    expect(reports[0]).toEqual({ from: 2, to: 3, recordsDone: 0, recordsTotal: lastReport?.recordsTotal })
    expect(lastReport?.recordsDone).toBe(lastReport?.recordsTotal)
    expect(reports.length).toBeGreaterThan(3)

    const reopenedStore = await openLmdbStore({ dir, clock, history, onMigration: () => expect.fail('migrated twice') })
    expect(text(await reopenedStore.get('new'))).toBe('new')
    expect(reopenedStore.stats().keys).toBe(672)
    await reopenedStore.close()

    const lateClock = manualClock(EVENTS_EXPIRE_MS - 5_000)
    const lateStore = await openLmdbStore({ dir, clock: lateClock, history })
    await lateClock.advance(4_000)
    expect(lateStore.stats().keys).toBe(672)
    await advanceUntil(lateClock, () => lateStore.stats().keys === 652)
    expect((await lateStore.list({ prefix: 'core/events/' })).entries).toEqual([])
    await lateStore.close()
  })

  it('SYS-28 continues after an interruption between any two commits', async () => {
    let isInterrupted = true
    let commits = 0
    for (; isInterrupted; commits++) {
      const dir = await createDir()
      let reports = 0
      const openResult = await openLmdbStore({
        dir,
        clock,
        history,
        onMigration() {
          if (reports++ === commits) throw new Error('interrupted')
        },
      }).catch((error: Error) => error)
      isInterrupted = openResult instanceof Error
      if (openResult instanceof Error)
        expect(openResult.message).toBe('Cannot migrate the store from format 2 to 3: interrupted')
      else await openResult.close()
      const store = await openLmdbStore({ dir, clock, history })
      await expectContents(store)
      await store.close()
    }
    expect(commits).toBeGreaterThan(4)
  })
})
