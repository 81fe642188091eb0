import { createReadStream } from 'node:fs'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { openLmdbStore } from '../lmdb.ts'
import type { Store } from '../store.ts'
import { advanceUntil, put, remove } from '../testing/store.fixture.ts'
import type { Manifest } from './archive.ts'
import { type Dump, dumpStore } from './dump-store.ts'
import { ArchiveInspector, type ArchiveInspectorOptions, type InspectedArchive } from './inspect-archives.ts'
import { readArchive } from './read-archive.ts'
import { ArchiveWriter } from './write-archive.ts'

const clock = manualClock()
let scratch: string
let store: Store
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'stowage-inspect-'))
  store = await openLmdbStore({ dir: pathOf('store'), clock, history: { entriesMax: 3 } })
})
afterEach(async () => {
  await store.close()
  await rm(scratch, { recursive: true, force: true })
})

const pathOf = (name: string) => join(scratch, name)
const sourceOf = (name: string) => ({ name, chunks: createReadStream(pathOf(name)) })

async function writeArchive(
  name: string,
  writeFrames: (writer: ArchiveWriter) => Promise<Dump | undefined>,
): Promise<Dump | undefined> {
  const file = await open(pathOf(name), 'w')
  try {
    return await writeFrames(new ArchiveWriter(async (bytes) => void (await file.write(bytes))))
  } finally {
    await file.close()
  }
}

async function dump(name: string, since?: Manifest): Promise<Dump> {
  const options = { dir: pathOf('store'), id: `id-${name}`, createdAt: '2026-01-01T00:00:00Z', since }
  return (await writeArchive(name, (writer) => dumpStore(options, writer))) as Dump
}

async function inspect(options: ArchiveInspectorOptions, ...names: string[]): Promise<InspectedArchive> {
  const inspector = new ArchiveInspector(options)
  let lastArchive: InspectedArchive | undefined
  for (const name of names) lastArchive = await inspector.inspect(sourceOf(name))
  return lastArchive as InspectedArchive
}

/** Closes the store, and flips a bit of the first byte of every occurrence of the marker in its file. */
async function damageStore(marker: string): Promise<void> {
  await store.close()
  const path = pathOf('store/store.mdb')
  const bytes = await readFile(path)
  for (let offset = bytes.indexOf(marker); offset >= 0; offset = bytes.indexOf(marker, offset + 1)) bytes[offset]! ^= 1
  await writeFile(path, bytes)
}

describe('ArchiveInspector', () => {
  it('SYS-20 finds the records that a restore of a full and an incremental archive creates', async () => {
    for (const key of ['a', 'b', 'c']) await put(store, key)
    const fullDump = await dump('full')
    await remove(store, 'a')
    for (let index = 0; index < 20; index++) await put(store, 'b', `b${index}`)
    await advanceUntil(clock, () => store.stats().historyEntries <= 3)
    await dump('second', fullDump.manifest)
    const revisions = new Set<number>()
    const inspectedArchive = await inspect(
      {
        isOneSequence: true,
        onRecord: ({ revision }) => void revisions.add(revision),
        onDrop: (revision) => void revisions.delete(revision),
      },
      'full',
      'second',
    )
    expect(inspectedArchive).toMatchObject({ isComplete: true, damagedRecords: [], missingRevisions: [] })
    expect(inspectedArchive.manifest.revision).toBe(store.revision)
    expect(inspectedArchive.records).toBe(revisions.size)
    expect(revisions.has(3)).toBe(true) // the only state of c
    expect(revisions.has(1)).toBe(false) // a was deleted and compacted
  })

  it('SYS-20 names a record that was damaged before the backup, as the backup itself does', async () => {
    await put(store, 'intact')
    await put(store, 'k/damaged', '<value>')
    await damageStore('<value>')
    const damage = { revision: 2, key: 'k/damaged', reason: 'the checksum of its value does not match', hasValue: true }
    expect((await dump('full')).damagedRecords).toEqual([damage])
    expect(await inspect({}, 'full')).toMatchObject({ records: 1, damagedRecords: [damage], missingRevisions: [] })
  })

  it('SYS-20 names revisions that the store had and no archive contains', async () => {
    for (const key of ['a', 'b', 'c']) await put(store, key)
    const fullDump = await dump('full')
    await put(store, 'd')
    await dump('second', fullDump.manifest)
    // Write the full archive again without the record of b.
    await writeArchive('incomplete', async (writer) => {
      for await (const frame of readArchive(sourceOf('full'))) {
        if (frame.type === 'end') await writer.end(frame.end.storeEntries - 2)
        else if (frame.type !== 'entries') await writer.write(frame)
        else {
          const entries = frame.entries.filter(({ name }) => name.readUIntBE(1, 6) !== 2)
          await writer.write({ type: 'entries', entries })
        }
      }
      return undefined
    })
    expect(await inspect({}, 'full', 'second')).toMatchObject({ missingRevisions: [] })
    expect(await inspect({}, 'incomplete', 'second')).toMatchObject({ missingRevisions: [2] })
  })

  it('SYS-20 accepts an incremental archive alone, and rejects it as the first of a sequence', async () => {
    await put(store, 'a')
    const fullDump = await dump('full')
    await put(store, 'b')
    const secondDump = await dump('second', fullDump.manifest)
    await put(store, 'c')
    await dump('third', secondDump.manifest)
    expect(await inspect({}, 'second')).toMatchObject({ isComplete: false, records: 1, missingRevisions: [] })
    expect(await inspect({}, 'second', 'full')).toMatchObject({ isComplete: true, records: 1 })
    await expect(inspect({ isOneSequence: true }, 'second')).rejects.toThrow('second is incremental')
    await expect(inspect({ isOneSequence: true }, 'full', 'full')).rejects.toThrow('only the first archive can be full')
    await expect(inspect({}, 'full', 'third')).rejects.toThrow('third continues a backup at revision 2')
  })
})
