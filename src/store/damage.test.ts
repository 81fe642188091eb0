// Damages the file of a store at random, a few bits or pages at a time, opens the store and reads everything. Every
// read must return the right value or an error that names the damage, and no damage may end the process.
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../test/helpers/random.ts'
import { seedFrom } from '../../test/helpers/seed.ts'
import { systemClock } from '../base/clock.ts'
import { openLmdbStore } from './lmdb.ts'
import { checkPages } from './pages/check-pages.ts'
import { inspectStore } from './records/inspect-store.ts'
import { HEADER, NAME_BYTES, nameOfSortKey, readSortKey } from './records/record-codec.ts'
import { DamagedRecordError, type Store } from './store.ts'

const OBJECTS = Number(process.env.DAMAGE_OBJECTS ?? 400)
const FLIPS = Number(process.env.DAMAGE_FLIPS ?? 400)
const PAGES = Number(process.env.DAMAGE_PAGES ?? 80)
/** The number of damaged places that are tested together. */
const GROUP_SIZE = Number(process.env.DAMAGE_GROUP ?? 4)
const PAGE_BYTES = 4_096
const TIMEOUT_MS = 120_000 + 500 * (FLIPS + PAGES) // enough for a large store on a busy machine

type Damage = { readonly offset: number; readonly bytes: Buffer }
const pageOf = ({ offset }: { readonly offset: number }): number => Math.floor(offset / PAGE_BYTES)

describe('a damaged store file', () => {
  const clock = systemClock()
  const seed = seedFrom('DAMAGE_SEED')
  const random = seededRandom(seed)
  const randomBelow = (limit: number) => Math.floor(random() * limit)
  const expectedValues = new Map<string, Buffer>()
  let dir: string
  let path: string
  let intactFile: Buffer
  /** The page of each header, by revision. */
  const headerPages = new Map<number, number>()

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-damage-'))
    path = join(dir, 'store.mdb')
    const store = await openLmdbStore({ dir, clock, history: { keepMs: 20, entriesMax: 100 } })
    for (let round = 0; round < 3; round++) {
      for (let firstIndex = 0; firstIndex < OBJECTS; firstIndex += 200) {
        const indices = Array.from({ length: Math.min(200, OBJECTS - firstIndex) }, (_, index) => firstIndex + index)
        await Promise.all(
          indices.filter((index) => round === 0 || index % 3 === 0).map((index) => write(store, index, round)),
        )
      }
    }
    await store.close()
    intactFile = readFileSync(path)
    const fd = openSync(path, 'r')
    checkPages({
      fd,
      keyBytes: NAME_BYTES,
      readKey: readSortKey,
      onNode({ page, key }) {
        const [kind, revision] = nameOfSortKey(key)
        if (kind === HEADER) headerPages.set(revision, page)
      },
    })
    closeSync(fd)
  }, TIMEOUT_MS)
  afterAll(() => rm(dir, { recursive: true, force: true }))

  function write(store: Store, index: number, round: number): Promise<unknown> {
    const key = `core/configmaps/default/c${index}`
    if (index % 30 === 9 && round === 2) {
      expectedValues.delete(key)
      return store.transact(() => [{ delete: key }])
    }
    const value = Buffer.alloc(index % 97 === 0 ? 15_000 : 200 + ((index * 37) % 1_100), `${index}/${round} `)
    expectedValues.set(key, value)
    return store.transact(() => [{ put: key, value }])
  }

  type Result = { readonly namedPages: ReadonlySet<number> } | { readonly damagedKeys: readonly string[] }

  /** Opens the store and reads everything. Returns the damaged pages or records. Throws on a wrong value. */
  async function readAll(): Promise<Result> {
    const openResult = await openLmdbStore({ dir, clock }).catch((error: Error) => error)
    if (openResult instanceof Error) {
      expect(openResult.message).toMatch(
        /store\.mdb.*(is damaged|is not an LMDB file|an LMDB file of format|of another program)/s,
      )
      return { namedPages: findNamedPages(openResult.message) }
    }
    try {
      const { entries } = await openResult.list({ prefix: '' })
      const damagedKeys: string[] = []
      for (const entry of entries) {
        try {
          if (!expectedValues.get(entry.key)?.equals(entry.value)) throw new Error(`wrong value of ${entry.key}`)
        } catch (error) {
          if (!(error instanceof DamagedRecordError)) throw error
          expect(error.message).toContain(entry.key)
          damagedKeys.push(entry.key)
        }
      }
      if (entries.length !== expectedValues.size)
        throw new Error(`${entries.length} objects instead of ${expectedValues.size}`)
      return { damagedKeys }
    } finally {
      await openResult.close()
    }
  }

  async function tryDamage(damages: readonly Damage[]): Promise<Result> {
    const metaPages = Buffer.from(intactFile.subarray(0, 2 * PAGE_BYTES))
    for (const { offset, bytes } of damages) if (offset < metaPages.length) metaPages.set(bytes, offset)
    writeAt(damages)
    try {
      return await readAll()
    } catch (error) {
      const places = damages.map(
        ({ offset, bytes }) => `${bytes.length} bytes at ${offset} (page ${pageOf({ offset })})`,
      )
      throw new Error(`seed ${seed}, ${places.join(', ')}: ${(error as Error).message}`, { cause: error })
    } finally {
      // Every commit changes a meta page. If there was no commit, restoring the damaged bytes is enough.
      if (!readAt(0, metaPages.length).equals(metaPages)) await writeFile(path, intactFile)
      else
        writeAt(
          damages.map(({ offset, bytes }) => ({ offset, bytes: intactFile.subarray(offset, offset + bytes.length) })),
        )
    }
  }

  function writeAt(parts: readonly Damage[]): void {
    const fd = openSync(path, 'r+')
    for (const { offset, bytes } of parts) writeSync(fd, bytes, 0, bytes.length, offset)
    closeSync(fd)
  }

  function readAt(position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    const fd = openSync(path, 'r')
    readSync(fd, bytes, 0, length, position)
    closeSync(fd)
    return bytes
  }

  interface Counts {
    refused: number
    damaged: number
    harmless: number
  }

  /**
   * Applies the damages together. If the store does not open, removes those on pages that the error names, until the store
   * opens. If the error names none of their pages, e.g. for a pointer to another page, tries each half separately.
   */
  async function tryTogether(damages: readonly Damage[], counts: Counts): Promise<void> {
    for (let remainingDamages = damages; remainingDamages.length > 0; ) {
      const result = await tryDamage(remainingDamages)
      if ('damagedKeys' in result) {
        counts.damaged += result.damagedKeys.length
        counts.harmless += remainingDamages.length - result.damagedKeys.length
        return
      }
      const otherDamages = remainingDamages.filter((damage) => !result.namedPages.has(pageOf(damage)))
      if (otherDamages.length === remainingDamages.length) {
        const middle = remainingDamages.length >> 1
        if (middle === 0) counts.refused++
        else for (const half of [[0, middle], [middle]]) await tryTogether(remainingDamages.slice(...half), counts)
        return
      }
      counts.refused += remainingDamages.length - otherDamages.length
      remainingDamages = otherDamages
    }
  }

  /**
   * Returns the pages that the error names, the pages with the headers of the records that it names, and, if it lists only
   * some of the damage, the pages that `stowage store check` lists.
   */
  function findNamedPages(message: string): Set<number> {
    const namedPages = [...message.matchAll(/page (\d+)/g)].map((match) => Number(match[1]))
    const headers = [...message.matchAll(/record (\d+)/g)].map((match) => headerPages.get(Number(match[1])) ?? -1)
    if (/not an LMDB file|LMDB file of format/.test(message)) namedPages.push(0) // the error names the file
    if (message.includes('is damaged')) expect(namedPages.length + headers.length, message).toBeGreaterThan(0)
    const listedPages = / more\. List all damage/.test(message)
      ? inspectStore({ path }).damagedPages.map(({ page }) => page)
      : []
    return new Set([...namedPages, ...headers, ...listedPages])
  }

  it(`SYS-20 returns no wrong value and names the damage after ${FLIPS} flipped bits, ${GROUP_SIZE} at a time`, {
    timeout: TIMEOUT_MS,
  }, async () => {
    const counts: Counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let triedCount = 0; triedCount < FLIPS; triedCount += GROUP_SIZE) {
      const flips = Array.from({ length: Math.min(GROUP_SIZE, FLIPS - triedCount) }, () => {
        const offset = randomBelow(intactFile.length)
        return { offset, bytes: Buffer.of(intactFile[offset]! ^ (1 << randomBelow(8))) }
      })
      await tryTogether(flips, counts)
    }
    console.log(
      `seed ${seed}: ${JSON.stringify(counts)} of ${FLIPS} flipped bits in ${intactFile.length} bytes, 0 wrong`,
    )
    expect(counts.damaged).toBeGreaterThan(0)
    expect(counts.refused).toBeGreaterThan(0)
  })

  it(`SYS-20 returns no wrong value and names the damage after ${PAGES} damaged pages, ${GROUP_SIZE} at a time`, {
    timeout: TIMEOUT_MS,
  }, async () => {
    const counts: Counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let triedCount = 0; triedCount < PAGES; triedCount += GROUP_SIZE) {
      const pages = Array.from({ length: Math.min(GROUP_SIZE, PAGES - triedCount) }, (_, index) => {
        const page = randomBelow(intactFile.length / PAGE_BYTES)
        return { offset: page * PAGE_BYTES, bytes: buildDamagedPage(page, triedCount + index) }
      })
      await tryTogether(pages, counts)
    }
    console.log(`seed ${seed}: ${JSON.stringify(counts)} of ${PAGES} damaged pages, 0 wrong`)
    expect(counts.refused).toBeGreaterThan(0)
  })

  /** Returns a page that was overwritten with zeros, with random bytes, partly, or with another page of the file. */
  function buildDamagedPage(page: number, kind: number): Buffer {
    const original = intactFile.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
    if (kind % 4 === 0) return Buffer.alloc(PAGE_BYTES)
    if (kind % 4 === 1) return Buffer.from(Array.from({ length: PAGE_BYTES }, () => randomBelow(256)))
    if (kind % 4 === 2) return Buffer.concat([original.subarray(0, PAGE_BYTES / 2), Buffer.alloc(PAGE_BYTES / 2)])
    const otherOffset = randomBelow(intactFile.length / PAGE_BYTES) * PAGE_BYTES
    return Buffer.from(intactFile.subarray(otherOffset, otherOffset + PAGE_BYTES))
  }
})
