import { closeSync, openSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { seededRandom } from '../../../test/helpers/random.ts'
import { openLmdbMedium } from '../lmdb.ts'
import { type MediumRecord, NO_FLOORS } from '../medium.ts'
import { checksumOf } from '../records/checksum.ts'
import { HEADER, NAME_BYTES, readSortKey, sortKeyOf, VALUE } from '../records/record-codec.ts'
import { EntryReader, UnreadablePageError } from './entry-reader.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-entries-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

function aRecord(revision: number, value: Buffer): MediumRecord {
  const header = { key: `k/${revision}`, revision, createRevision: revision, isDeleted: false, expiresAtMs: undefined }
  return { ...header, checksum: checksumOf(value), valueBytes: value.length, value }
}

describe('EntryReader', () => {
  it('SYS-20 returns the committed entries, even while the next commit is written', async () => {
    const random = seededRandom(7)
    const randomBelow = (limit: number) => Math.floor(random() * limit)
    const medium = await openLmdbMedium(dir)
    medium.scan(() => {})
    const values = new Map<number, Buffer>()
    const wrongRevisions = () => [...values].filter(([key, value]) => !value.equals(medium.read(key) ?? Buffer.of(0)))
    let revision = 0
    for (let commit = 0; commit < 100; commit++) {
      const append = Array.from({ length: randomBelow(60) }, () => {
        const size = 1 + (random() < 0.1 ? randomBelow(30_000) : randomBelow(1_500))
        return aRecord(++revision, Buffer.alloc(size, `${revision} `))
      })
      const drop = [...values.keys()].filter(() => random() < 0.15)
      const isBlocking = random() < 0.5
      const batch = { append, drop, ...(drop.length > 0 ? { floors: NO_FLOORS } : {}) }
      const written = medium.write(batch, { isBlocking })
      if (!isBlocking) expect(wrongRevisions(), `during commit ${commit}`).toEqual([])
      await written
      for (const key of drop) values.delete(key)
      for (const { revision: key, value } of append) values.set(key, value as Buffer)
      if (random() < 0.5) continue // the next commit begins before any read
      expect(wrongRevisions(), `after commit ${commit}`).toEqual([])
      for (const key of [...drop, 0, revision + 1]) expect(medium.read(key)).toBeUndefined()
    }
    expect(values.size).toBeGreaterThan(100)
    await medium.close()
  })

  it('reads the meta pages before a commit of another thread, whose meta page must not be read before it is durable', async () => {
    const medium = await openLmdbMedium(dir)
    medium.scan(() => {})
    const append = [aRecord(1, Buffer.from('first'))]
    await medium.write({ append, drop: [] }, { isBlocking: true })
    const refresh = vi.spyOn(EntryReader.prototype, 'refresh')
    const written = medium.write({ append: [], drop: [1], floors: NO_FLOORS })
    expect(refresh).toHaveBeenCalledOnce()
    refresh.mockRestore()
    await written
    await medium.close()
  })

  it('reads through new commits without allocating memory for copies of pages', async () => {
    const medium = await openLmdbMedium(dir)
    medium.scan(() => {})
    const values = Array.from({ length: 400 }, (_, index) => aRecord(index + 1, Buffer.alloc(300, `${index} `)))
    await medium.write({ append: values, drop: [] })
    await medium.close()
    const fd = openSync(join(dir, 'store.mdb'), 'r')
    const reader = new EntryReader({ fd, keyBytes: NAME_BYTES, readKey: readSortKey })
    reader.read(sortKeyOf([VALUE, 1]))
    const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow')
    reader.expire()
    const value = reader.read(sortKeyOf([VALUE, 1]))
    const sizes = allocate.mock.calls.map(([size]) => size)
    allocate.mockRestore()
    closeSync(fd)
    expect(value).toEqual(values[0]!.value)
    expect(sizes).toEqual([300])
  })

  it('SYS-20 finds every key in an intact file, and never crashes on a damaged one', async () => {
    const random = seededRandom(11)
    const medium = await openLmdbMedium(dir)
    medium.scan(() => {})
    const records = Array.from({ length: 400 }, (_, index) =>
      aRecord(index + 1, Buffer.alloc(index % 20 === 0 ? 9_000 : 300, `${index} `)),
    )
    await medium.write({ append: records, drop: [] })
    await medium.close()
    const fd = openSync(join(dir, 'store.mdb'), 'r+')
    const openReader = () => new EntryReader({ fd, keyBytes: NAME_BYTES, readKey: readSortKey })
    const intactReader = openReader()
    for (const { revision, value } of records) {
      expect(intactReader.read(sortKeyOf([VALUE, revision]))).toEqual(value)
      expect(intactReader.read(sortKeyOf([HEADER, revision]))).toBeDefined()
    }
    let unreadableCount = 0
    for (let round = 0; round < 100; round++) {
      const page = Buffer.from(Array.from({ length: 64 }, () => Math.floor(random() * 256)))
      writeSync(fd, page, 0, page.length, Math.floor(random() * 60) * 4_096 + Math.floor(random() * 4_000))
      const reader = openReader()
      for (const { revision } of records) {
        try {
          reader.read(sortKeyOf([VALUE, revision]))
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadablePageError)
          unreadableCount++
        }
      }
    }
    closeSync(fd)
    expect(unreadableCount).toBeGreaterThan(0)
  })
})
