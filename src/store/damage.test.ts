// Damages the file of a store at random, a few bits or one page at a time, opens the store and reads everything. Every answer
// must be right or an error that names the damage, and no damage may end the process.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../test/helpers/random.ts'
import { seedFrom } from '../../test/helpers/seed.ts'
import { systemClock } from '../base/clock.ts'
import { openLmdbStore } from './lmdb.ts'
import { DamagedRecordError, type Store } from './store.ts'

const OBJECTS = Number(process.env.DAMAGE_OBJECTS ?? 400)
const FLIPS = Number(process.env.DAMAGE_FLIPS ?? 400)
const PAGES = Number(process.env.DAMAGE_PAGES ?? 80)
/** Flips that are tried together. They are tried one by one if the store does not open. */
const GROUP = Number(process.env.DAMAGE_GROUP ?? 4)
const PAGE_BYTES = 4_096

type Damage = { readonly at: number; readonly bytes: Buffer }

describe('a damaged store file', () => {
  const clock = systemClock()
  const seed = seedFrom('DAMAGE_SEED')
  const random = seededRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const expected = new Map<string, Buffer>()
  let dir: string
  let path: string
  let intact: Buffer

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
  })
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

  /** Opens the store and reads everything. Returns 'refused', or the keys of the damaged records. Throws on a wrong answer. */
  async function readAll(): Promise<'refused' | readonly string[]> {
    const store = await openLmdbStore({ dir, clock }).catch((error: Error) => {
      expect(error.message).toMatch(
        /store\.mdb.*(is damaged|is not an LMDB file|an LMDB file of format|of another program)/s,
      )
      return undefined
    })
    if (!store) return 'refused'
    try {
      const { entries } = await store.list({ prefix: '' })
      const damaged: string[] = []
      for (const entry of entries) {
        try {
          if (!expected.get(entry.key)?.equals(entry.value)) throw new Error(`wrong answer for ${entry.key}`)
        } catch (error) {
          if (!(error instanceof DamagedRecordError)) throw error
          expect(error.message).toContain(entry.key)
          damaged.push(entry.key)
        }
      }
      if (entries.length !== expected.size) throw new Error(`${entries.length} objects in place of ${expected.size}`)
      return damaged
    } finally {
      await store.close()
    }
  }

  async function tryDamage(damages: readonly Damage[]): Promise<'refused' | readonly string[]> {
    const fd = openSync(path, 'r+')
    for (const { at, bytes } of damages) writeSync(fd, bytes, 0, bytes.length, at)
    closeSync(fd)
    try {
      return await readAll()
    } catch (error) {
      const places = damages.map(
        ({ at, bytes }) => `${bytes.length} bytes at ${at} (page ${Math.floor(at / PAGE_BYTES)})`,
      )
      throw new Error(`seed ${seed}, ${places.join(', ')}: ${(error as Error).message}`, { cause: error })
    } finally {
      await writeFile(path, intact) // opening may have written
    }
  }

  it(`SYS-20 gives no wrong answer and names the damage after ${FLIPS} flipped bits, ${GROUP} at a time`, async () => {
    const counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let tried = 0; tried < FLIPS; tried += GROUP) {
      const flips = Array.from({ length: GROUP }, () => {
        const at = below(intact.length)
        return { at, bytes: Buffer.of(intact[at]! ^ (1 << below(8))) }
      })
      const together = await tryDamage(flips)
      const results = together === 'refused' ? [] : [together]
      if (together === 'refused') for (const flip of flips) results.push(await tryDamageOne(flip))
      const damaged = results.reduce((sum, keys) => sum + keys.length, 0)
      counts.damaged += damaged
      counts.harmless += GROUP - damaged
    }
    counts.harmless -= counts.refused
    console.log(`seed ${seed}: ${JSON.stringify(counts)} of ${FLIPS} flipped bits in ${intact.length} bytes, 0 wrong`)
    expect(counts.damaged).toBeGreaterThan(0)
    expect(counts.refused).toBeGreaterThan(0)

    async function tryDamageOne(flip: Damage): Promise<readonly string[]> {
      const result = await tryDamage([flip])
      if (result !== 'refused') return result
      counts.refused++
      return []
    }
  })

  it(`SYS-20 gives no wrong answer and names the damage after each of ${PAGES} damaged pages`, async () => {
    const counts = { refused: 0, damaged: 0, harmless: 0 }
    for (let tried = 0; tried < PAGES; tried++) {
      const page = below(intact.length / PAGE_BYTES)
      const bytes = damagedPage(page, tried)
      const result = await tryDamage([{ at: page * PAGE_BYTES, bytes }])
      if (result === 'refused') counts.refused++
      else if (result.length > 0) counts.damaged++
      else counts.harmless++
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
