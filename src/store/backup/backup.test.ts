import { createReadStream } from 'node:fs'
import { cp, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import type { Store } from '../store.ts'
import { bundleChild, runChild } from '../testing/run-child.ts'
import { advanceUntil, put, remove } from '../testing/store.fixture.ts'
import { type Manifest, PAYLOAD_BYTES_MAX } from './archive.ts'
import { dumpStore } from './dump-store.ts'
import { readArchive } from './read-archive.ts'
import { restoreStore } from './restore-store.ts'
import { ArchiveWriter } from './write-archive.ts'

let scratch: string
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'stowage-archive-'))
})
afterEach(() => rm(scratch, { recursive: true, force: true }))

const pathOf = (name: string) => join(scratch, name)

async function dump(
  storeName: string,
  archiveName: string,
  since?: Pick<Manifest, 'revision' | 'id'>,
): Promise<Manifest> {
  const file = await open(pathOf(archiveName), 'w')
  const writer = new ArchiveWriter(async (bytes) => void (await file.write(bytes)))
  try {
    const options = { dir: pathOf(storeName), id: `id-${archiveName}`, createdAt: '2026-01-01T00:00:00Z', since }
    return (await dumpStore(options, writer)).manifest
  } finally {
    await file.close()
  }
}

const sourceOf = (name: string) => ({ name, chunks: createReadStream(pathOf(name)) })
const restore = (storeName: string, ...archives: string[]) =>
  restoreStore({ dir: pathOf(storeName), archives: archives.map(sourceOf) })

/** Returns the current entries with their revisions. */
async function readContent(store: Store): Promise<string[]> {
  const { entries } = await store.list({ prefix: '' })
  return entries.map(({ key, value, modRevision, createRevision }) => {
    return `${key} ${Buffer.from(value).toString()} ${modRevision} ${createRevision}`
  })
}

async function contentOfDir(name: string): Promise<{ revision: number; content: string[] }> {
  const store = await openLmdbStore({ dir: pathOf(name), clock: manualClock() })
  const result = { revision: store.revision, content: await readContent(store) }
  await store.close()
  return result
}

describe('a backup archive', () => {
  it('SYS-20 restores the state of one revision, even if a client writes during the backup', async () => {
    const store = await openLmdbStore({ dir: pathOf('store'), clock: systemClock() })
    for (let index = 0; index < 500; index++) await put(store, `k/${index % 200}`, `value ${index}`.repeat(100))
    await remove(store, 'k/7')
    let isStopped = false
    const writer = (async () => {
      for (let index = 0; !isStopped; index++) await put(store, `w/${index % 50}`, `${index}`)
    })()
    const { revision } = await dump('store', 'full')
    const expectedEntries = (await store.list({ prefix: '', atRevision: revision })).entries
    isStopped = true
    await writer
    await store.close()
    expect(await restore('restored', 'full')).toMatchObject({ revision, isResumed: false })
    const restoredStore = await openLmdbStore({ dir: pathOf('restored'), clock: manualClock() })
    expect(restoredStore.revision).toBe(revision)
    expect((await restoredStore.list({ prefix: '' })).entries).toEqual(expectedEntries)
    expect(await put(restoredStore, 'more')).toBe(revision + 1)
    await restoredStore.close()
    expect((await stat(pathOf('restored/store.mdb'))).mode & 0o777).toBe(0o600)
    expect((await readdir(pathOf('restored'))).sort()).toEqual(['store.mdb', 'store.mdb-lock'])
  })

  it('SYS-20 restores a full archive and incremental ones, without keys that were deleted and compacted in between', async () => {
    const clock = manualClock()
    const store = await openLmdbStore({ dir: pathOf('store'), clock, history: { entriesMax: 3 } })
    for (const key of ['a', 'b', 'c', 'd']) await put(store, key)
    const fullManifest = await dump('store', 'full')
    await remove(store, 'a')
    for (let index = 0; index < 20; index++) await put(store, 'b', `b${index}`)
    await advanceUntil(clock, () => store.stats().historyEntries <= 3)
    await put(store, 'e')
    const secondManifest = await dump('store', 'second', fullManifest)
    await remove(store, 'c')
    await put(store, 'a', 'again')
    const thirdManifest = await dump('store', 'third', secondManifest)
    const expectedContent = { revision: store.revision, content: await readContent(store) }
    await store.close()
    expect(thirdManifest).toMatchObject({
      since: secondManifest.revision,
      parent: 'id-second',
      revision: expectedContent.revision,
    })
    await restore('restored', 'full', 'second', 'third')
    expect(await contentOfDir('restored')).toEqual(expectedContent)
    expect(expectedContent.content.map((line) => line.split(' ')[0])).toEqual(['a', 'b', 'd', 'e'])
    expect((await stat(pathOf('third'))).size).toBeLessThan((await stat(pathOf('full'))).size)
  })

  it('SYS-20 is rejected if archives are missing, in the wrong order, or do not belong together', async () => {
    const store = await openLmdbStore({ dir: pathOf('store'), clock: manualClock() })
    await put(store, 'a')
    const fullManifest = await dump('store', 'full')
    await put(store, 'b')
    const secondManifest = await dump('store', 'second', fullManifest)
    await put(store, 'c')
    await dump('store', 'third', secondManifest)
    await store.close()
    const otherStore = await openLmdbStore({ dir: pathOf('other'), clock: manualClock() })
    await put(otherStore, 'x')
    await otherStore.close()
    await dump('other', 'foreign')
    await expect(restore('1', 'second')).rejects.toThrow('second is incremental: it continues a backup at revision 1')
    expect(await readdir(pathOf('1'))).toEqual([]) // a failed restore without a commit leaves no file
    await expect(restore('2', 'full', 'third')).rejects.toThrow(
      'third continues a backup at revision 2, but the archive before it ends at revision 1.',
    )
    await expect(restore('3', 'full', 'full')).rejects.toThrow(
      'full is a full archive: only the first archive can be full',
    )
    await expect(restore('4', 'foreign', 'second')).rejects.toThrow(
      'second continues another archive than the one before it, which has the same revision 1.',
    )
    await expect(dump('store', 'ahead', { revision: 99, id: 'x' })).rejects.toThrow(
      'The store is at revision 3, before',
    )
    await expect(restore('store', 'full')).rejects.toThrow('store.mdb exists: a restore does not overwrite a store')
  })

  it('SYS-20 is rejected if one of its bits is flipped or its end is missing', async () => {
    const store = await openLmdbStore({ dir: pathOf('store'), clock: manualClock() })
    for (let index = 0; index < 20; index++) await put(store, `k/${index}`, 'value '.repeat(30))
    await store.close()
    await dump('store', 'full')
    const content = await readFile(pathOf('full'))
    const verify = async () => {
      for await (const frame of readArchive(sourceOf('damaged'))) expect(frame.type).toBeDefined()
    }
    for (let position = 0; position < content.length; position += 7) {
      const damagedArchive = Buffer.from(content)
      damagedArchive[position]! ^= 1 << (position % 8)
      await writeFile(pathOf('damaged'), damagedArchive)
      await expect(verify(), `byte ${position}`).rejects.toThrow(
        /^damaged is (damaged|not a backup|a backup archive of)/,
      )
    }
    for (let size = 0; size < content.length; size += 101) {
      await writeFile(pathOf('damaged'), content.subarray(0, size))
      await expect(verify(), `${size} bytes`).rejects.toThrow(/^damaged is (damaged at byte \d+: it ends|not a backup)/)
    }
    await writeFile(pathOf('damaged'), Buffer.concat([content, content]))
    await expect(verify()).rejects.toThrow('data follows its end')
    expect(PAYLOAD_BYTES_MAX).toBeGreaterThan(64 * 1024 * 1024) // a value can be as large as a transaction
  })

  it('SYS-20 is restored completely by a restore that is interrupted several times, each time after a commit', async () => {
    const store = await openLmdbStore({ dir: pathOf('store'), clock: systemClock() })
    const value = Buffer.alloc(700_000, 'x')
    for (let index = 0; index < 60; index++) await store.transact(() => [{ put: `k/${index}`, value }])
    const fullManifest = await dump('store', 'full')
    for (let index = 50; index < 80; index++) await store.transact(() => [{ put: `k/${index}`, value }])
    await remove(store, 'k/3')
    await dump('store', 'second', fullManifest)
    await store.close()
    const expectedContent = await contentOfDir('store')
    let commits = 0
    for (let stopAfter = 1; ; stopAfter++) {
      const archives = ['full', 'second'].map(sourceOf)
      let ownCommits = 0
      const onCommit = () => {
        if (++ownCommits === stopAfter) throw new Error('interrupted')
      }
      const outcome = await restoreStore({ dir: pathOf('restored'), archives, onCommit }).catch(
        (error) => error.message,
      )
      commits += ownCommits
      if (outcome !== 'interrupted') {
        expect(outcome).toMatchObject({ isResumed: true, revision: expectedContent.revision })
        break
      }
    }
    expect(commits).toBeGreaterThan(8)
    expect(await contentOfDir('restored')).toEqual(expectedContent)
  })

  it('SYS-20 is restored completely by a restore that is killed several times, each time after a commit', async () => {
    const store = await openLmdbStore({ dir: pathOf('store'), clock: systemClock() })
    const value = Buffer.alloc(1_000_000, 'y')
    for (let index = 0; index < 80; index++) await store.transact(() => [{ put: `k/${index}`, value }])
    await store.close()
    await dump('store', 'full')
    await cp(pathOf('store'), pathOf('expected'), { recursive: true })
    const program = await bundleChild('restore-child.ts')
    let kills = 0
    for (let lines = 1; ; lines++) {
      const child = runChild([...program.command, pathOf('restored'), pathOf('full')])
      let line: string | undefined
      for (let index = 0; index < lines; index++) line = await child.nextLine()
      if (line === undefined || line === 'restored') break
      child.process.kill('SIGKILL')
      await child.whenExited()
      kills++
    }
    await program.remove()
    expect(kills).toBeGreaterThan(2)
    expect(await contentOfDir('restored')).toEqual(await contentOfDir('expected'))
  })
})
