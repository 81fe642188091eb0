// Damages the file of a store at random, a few bits or pages at a time, opens the store and reads everything. Every answer must
// be right or an error that names the damage, and no damage may end the process.
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
import { HEADER, NAME_BYTES, nameOfSorted, readSortedName } from './records/record-codec.ts'
import { DamagedRecordError, type Store } from './store.ts'

const OBJECTS = Number(process.env.DAMAGE_OBJECTS ?? 400)
const FLIPS = Number(process.env.DAMAGE_FLIPS ?? 400)
const PAGES = Number(process.env.DAMAGE_PAGES ?? 80)
/** Damages that are tried together. */
const GROUP = Number(process.env.DAMAGE_GROUP ?? 4)
const PAGE_BYTES = 4_096
const TIMEOUT_MS = 120_000 + 500 * (FLIPS + PAGES) // of a large store on a busy machine

type Damage = { readonly at: number; readonly bytes: Buffer }
const pageOf = ({ at }: { readonly at: number }): number => Math.floor(at / PAGE_BYTES)

describe('a damaged store file', () => {
  const clock = systemClock()
  const seed = seedFrom('DAMAGE_SEED')
  const random = seededRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const expected = new Map<string, Buffer>()
  let dir: string
  let path: string
  let intact: Buffer
  /** The page of each header, by revision. */
  const headerPages = new Map<number, number>()

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-damage-'))
    path = join(dir, 'store.mdb')
    const store = await openLmdbStore({ dir, clock, history: { keepMs: 20, entriesMax: 100 } })
    for (let round = 0; round < 3; round++) {
      for (let first = 0; first < OBJECTS; first += 200) {
        const indices = Array.from({ length: Math.min(200, OBJECTS - first) }, (_, index) => first + index)
        await Promise.all(
          indices.filter((index) => round === 0 || index % 3 === 0).map((index) => write(store, index, round)),
        )
      }
    }
    await store.close()
    intact = readFileSync(path)
    const fd = openSync(path, 'r')
    checkPages({
      fd,
      keyBytes: NAME_BYTES,
      readKey: readSortedName,
      onNode({ page, key }) {
        const [kind, revision] = nameOfSorted(key)
        if (kind === HEADER) headerPages.set(revision, page)
      },
    })
    closeSync(fd)
  }, TIMEOUT_MS)
  afterAll(() => rm(dir, { recursive: true, force: true }))

  function write(store: Store, index: number, round: number): Promise<unknown> {
    const key = `core/configmaps/default/c${index}`
    if (index % 30 === 9 && round === 2) {
      expected.delete(key)
      return store.transact(() => [{ delete: key }])
    }
    const value = Buffer.alloc(index % 97 === 0 ? 15_000 : 200 + ((index * 37) % 1_100), `${index}/${round} `)
    expected.set(key, value)
    return store.transact(() => [{ put: key, value }])
  }

  type Result = { readonly message: string } | { readonly damagedKeys: readonly string[] }

  /** Opens the store and reads everything. Returns why it was refused, or the damaged records. Throws on a wrong answer. */
  async function readAll(): Promise<Result> {
    const opened = await openLmdbStore({ dir, clock }).catch((error: Error) => error)
    if (opened instanceof Error) {
      expect(opened.message).toMatch(
        /store\.mdb.*(is damaged|is not an LMDB file|an LMDB file of format|of another program)/s,
      )
      return { message: opened.message }
    }
    try {
      const { entries } = await opened.list({ prefix: '' })
      const damagedKeys: string[] = []
      for (const entry of entries) {
        try {
          if (!expected.get(entry.key)?.equals(entry.value)) throw new Error(`wrong answer for ${entry.key}`)
        } catch (error) {
          if (!(error instanceof DamagedRecordError)) throw error
          expect(error.message).toContain(entry.key)
          damagedKeys.push(entry.key)
        }
      }
      if (entries.length !== expected.size) throw new Error(`${entries.length} objects in place of ${expected.size}`)
      return { damagedKeys }
    } finally {
      await opened.close()
    }
  }

  async function tryDamage(damages: readonly Damage[]): Promise<Result> {
    const metaPages = Buffer.from(intact.subarray(0, 2 * PAGE_BYTES))
    for (const { at, bytes } of damages) if (at < metaPages.length) metaPages.set(bytes, at)
    writeAt(damages)
    try {
      return await readAll()
    } catch (error) {
      const places = damages.map(({ at, bytes }) => `${bytes.length} bytes at ${at} (page ${pageOf({ at })})`)
      throw new Error(`seed ${seed}, ${places.join(', ')}: ${(error as Error).message}`, { cause: error })
    } finally {
      // Every commit changes a meta page. Without one, only the damaged bytes have to be written again.
      if (!readAt(0, metaPages.length).equals(metaPages)) await writeFile(path, intact)
      else writeAt(damages.map(({ at, bytes }) => ({ at, bytes: intact.subarray(at, at + bytes.length) })))
    }
  }

  function writeAt(parts: readonly Damage[]): void {
    const fd = openSync(path, 'r+')
    for (const { at, bytes } of parts) writeSync(fd, bytes, 0, bytes.length, at)
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
   * Tries damages together. If the store is refused, it tries them without those on the pages that the error names, until the
   * store opens; and one by one if it names none of them.
   */
  async function tryTogether(damages: readonly Damage[], counts: Counts): Promise<void> {
    for (let remaining = damages; remaining.length > 0; ) {
      const result = await tryDamage(remaining)
      if (!('message' in result)) {
        counts.damaged += result.damagedKeys.length
        counts.harmless += remaining.length - result.damagedKeys.length
        return
      }
      const namedPages = pagesNamedIn(result.message)
      const others = remaining.filter((damage) => !namedPages.has(pageOf(damage)))
      if (others.length === remaining.length) {
        if (remaining.length > 1) for (const damage of remaining) await tryTogether([damage], counts)
        else counts.refused++
        return
      }
      counts.refused += remaining.length - others.length
      remaining = others
    }
  }

  /** Returns the pages that an error names, and those with the headers of the records that it names. */
  function pagesNamedIn(message: string): Set<number> {
    const headerPagesNamed = [...message.matchAll(/record (\d+)/g)].map(
      (match) => headerPages.get(Number(match[1])) ?? -1,
    )
    return new Set([...message.matchAll(/page (\d+)/g)].map((match) => Number(match[1])).concat(headerPagesNamed))
  }

  it(`SYS-20 gives no wrong answer and names the damage after ${FLIPS} flipped bits, ${GROUP} at a time`, {
    timeout: TIMEOUT_MS,
  }, async () => {
    const counts: Counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let tried = 0; tried < FLIPS; tried += GROUP) {
      const flips = Array.from({ length: Math.min(GROUP, FLIPS - tried) }, () => {
        const at = below(intact.length)
        return { at, bytes: Buffer.of(intact[at]! ^ (1 << below(8))) }
      })
      await tryTogether(flips, counts)
    }
    console.log(`seed ${seed}: ${JSON.stringify(counts)} of ${FLIPS} flipped bits in ${intact.length} bytes, 0 wrong`)
    expect(counts.damaged).toBeGreaterThan(0)
    expect(counts.refused).toBeGreaterThan(0)
  })

  it(`SYS-20 gives no wrong answer and names the damage after ${PAGES} damaged pages, ${GROUP} at a time`, {
    timeout: TIMEOUT_MS,
  }, async () => {
    const counts: Counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let tried = 0; tried < PAGES; tried += GROUP) {
      const pages = Array.from({ length: Math.min(GROUP, PAGES - tried) }, (_, index) => {
        const page = below(intact.length / PAGE_BYTES)
        return { at: page * PAGE_BYTES, bytes: damagedPage(page, tried + index) }
      })
      await tryTogether(pages, counts)
    }
    console.log(`seed ${seed}: ${JSON.stringify(counts)} of ${PAGES} damaged pages, 0 wrong`)
    expect(counts.refused).toBeGreaterThan(0)
  })

  /** Returns a page that was overwritten with zeros, with random bytes, partly, or with another page of the file. */
  function damagedPage(page: number, kind: number): Buffer {
    const original = intact.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
    if (kind % 4 === 0) return Buffer.alloc(PAGE_BYTES)
    if (kind % 4 === 1) return Buffer.from(Array.from({ length: PAGE_BYTES }, () => below(256)))
    if (kind % 4 === 2) return Buffer.concat([original.subarray(0, PAGE_BYTES / 2), Buffer.alloc(PAGE_BYTES / 2)])
    const other = below(intact.length / PAGE_BYTES) * PAGE_BYTES
    return Buffer.from(intact.subarray(other, other + PAGE_BYTES))
  }
})
