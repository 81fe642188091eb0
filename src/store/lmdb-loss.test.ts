// Tests an LMDB store whose files change while it is open: it rejects every later write, and every acknowledged write is in
// the file that the path referred to when the write was acknowledged.
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { manualClock } from '../base/manual-clock.ts'
import { openLmdbStore } from './lmdb.ts'
import { StoreClosedError } from './store.ts'
import { bundleChild, runChild } from './testing/run-child.ts'
import { collectEvents, put, waitUntil } from './testing/store.fixture.ts'

const ROUNDS = 100
const WRITERS = 8

let scratch: string
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'stowage-loss-'))
})
afterEach(() => rm(scratch, { recursive: true, force: true }))

interface Loss {
  readonly title: string
  readonly message: RegExp
  /** Changes the files. Returns the directory in which the store survives, if it does. */
  readonly cause: (dir: string) => string | undefined
}

const moveAside = (dir: string): string => {
  const asideDir = `${dir}.aside`
  renameSync(dir, asideDir)
  return asideDir
}

const LOSSES: readonly Loss[] = [
  {
    title: 'the directory is removed',
    message: /store\.mdb was removed or renamed/,
    cause: (dir) => void rmSync(dir, { recursive: true }),
  },
  {
    title: 'the directory is removed and created again',
    message: /store\.mdb was removed or renamed/,
    cause: (dir) => {
      rmSync(dir, { recursive: true })
      mkdirSync(dir)
      return undefined
    },
  },
  { title: 'the directory is renamed', message: /store\.mdb was removed or renamed/, cause: moveAside },
  {
    title: 'the directory is replaced by a copy',
    message: /store\.mdb was replaced by another file/,
    cause: (dir) => {
      const asideDir = moveAside(dir)
      mkdirSync(dir)
      for (const name of ['store.mdb', 'store.mdb-lock']) copyFileSync(join(asideDir, name), join(dir, name))
      return asideDir
    },
  },
  {
    title: 'the file is removed',
    message: /store\.mdb was removed or renamed/,
    cause: (dir) => void rmSync(join(dir, 'store.mdb')),
  },
  {
    title: 'the file is replaced',
    message: /store\.mdb was replaced by another file/,
    cause: (dir) => {
      mkdirSync(`${dir}.aside`)
      renameSync(join(dir, 'store.mdb'), join(`${dir}.aside`, 'store.mdb'))
      writeFileSync(join(dir, 'store.mdb'), 'another file')
      return `${dir}.aside`
    },
  },
  {
    title: 'the table of readers is removed',
    message: /store\.mdb-lock was removed or renamed/,
    cause: (dir) => {
      rmSync(join(dir, 'store.mdb-lock'))
      return dir
    },
  },
]

describe('an LMDB store whose files change', () => {
  it.each(LOSSES)(
    'SYS-20 closes within a second, with the reason, if $title and nothing is written',
    async ({ cause, message }) => {
      const clock = manualClock()
      const dir = join(scratch, 'store')
      const store = await openLmdbStore({ dir, clock })
      await put(store, 'a')
      const { endReasons } = collectEvents(store)
      expect(await store.problem?.()).toBeUndefined()
      cause(dir)
      await clock.advance(1_000)
      await waitUntil(() => endReasons.length > 0)
      expect(endReasons[0]?.message).toMatch(message)
      expect(await store.problem?.()).toMatch(
        /^a file of the store was (removed or renamed|replaced by another file) while/,
      )
      await expect(put(store, 'b')).rejects.toThrow(StoreClosedError)
      await expect(store.get('a')).rejects.toThrow(StoreClosedError)
      await store.close()
    },
  )

  it('SYS-20 closes if the file is truncated', async () => {
    const clock = manualClock()
    const dir = join(scratch, 'store')
    const store = await openLmdbStore({ dir, clock })
    await store.transact(() => [{ put: 'a', value: Buffer.alloc(1_000_000) }])
    const { endReasons } = collectEvents(store)
    truncateSync(join(dir, 'store.mdb'), 500_000)
    await clock.advance(1_000)
    await waitUntil(() => endReasons.length > 0)
    expect(endReasons[0]?.message).toMatch(/store\.mdb was truncated from \d+ to 500000 bytes while/)
    await store.close()
  })

  it(`SYS-20 acknowledges no lost write in ${ROUNDS} losses under load`, async () => {
    let acknowledgedTotal = 0
    for (let round = 0; round < ROUNDS; round++) {
      const { cause, title } = LOSSES[round % LOSSES.length]!
      const dir = join(scratch, `${round}`)
      const store = await openLmdbStore({ dir, clock: systemClock() })
      const acknowledgedKeys = new Set<string>()
      let isLost = false
      const acknowledgedAfterLoss: string[] = []
      const writers = Array.from({ length: WRITERS }, async (_, writer) => {
        for (let index = 0; ; index++) {
          const key = `${writer}/${index}`
          try {
            await put(store, key)
          } catch (error) {
            expect(error).toBeInstanceOf(StoreClosedError)
            return
          }
          acknowledgedKeys.add(key)
          if (isLost) acknowledgedAfterLoss.push(key)
        }
      })
      await waitUntil(() => acknowledgedKeys.size > 20 + (round % 10) * 7)
      const survivingDir = cause(dir)
      isLost = true
      await Promise.all(writers)
      await store.close()
      expect(acknowledgedAfterLoss, title).toEqual([])
      acknowledgedTotal += acknowledgedKeys.size
      if (!survivingDir) continue
      const reopenedStore = await openLmdbStore({ dir: survivingDir, clock: manualClock() })
      const keys = new Set((await reopenedStore.list({ prefix: '' })).entries.map(({ key }) => key))
      expect(
        [...acknowledgedKeys].filter((key) => !keys.has(key)),
        title,
      ).toEqual([])
      await reopenedStore.close()
    }
    expect(acknowledgedTotal).toBeGreaterThan(ROUNDS * 20)
  })
})

describe('the path of an open store', () => {
  it('SYS-20 stays locked for other processes if the directory is deleted and created again', async () => {
    const dir = join(scratch, 'store')
    const alias = join(scratch, 'alias')
    const program = await bundleChild('open-store-child.ts')
    const clock = manualClock() // the store of this process does not detect the loss
    const store = await openLmdbStore({ dir, clock })
    rmSync(dir, { recursive: true })
    mkdirSync(dir)
    await symlink(dir, alias)
    for (const path of [dir, alias]) {
      const otherProcess = runChild([...program.command, path])
      expect((await otherProcess.whenExited()).code).toBe(1)
      expect(otherProcess.errors()).toContain(
        `The directory ${path} is in use by another Stowage process (pid ${process.pid}).`,
      )
    }
    expect(readdirSync(dir)).toEqual([])
    await store.close()
    await (await openLmdbStore({ dir, clock })).close()
    await program.remove()
  })

  it('SYS-20 stays locked if the socket in the directory is deleted', async () => {
    const dir = join(scratch, 'store')
    const store = await openLmdbStore({ dir, clock: manualClock() })
    for (const name of readdirSync(dir)) if (name.startsWith('lock-')) rmSync(join(dir, name))
    await expect(openLmdbStore({ dir, clock: manualClock() })).rejects.toThrow(`(pid ${process.pid})`)
    await store.close()
  })

  it('SYS-20 stays locked by the socket in the directory if the directory is moved', async () => {
    const dir = join(scratch, 'store')
    const movedDir = join(scratch, 'moved')
    const store = await openLmdbStore({ dir, clock: manualClock() })
    renameSync(dir, movedDir)
    await expect(openLmdbStore({ dir: movedDir, clock: manualClock() })).rejects.toThrow(`(pid ${process.pid})`)
    await store.close()
    await (await openLmdbStore({ dir: movedDir, clock: manualClock() })).close()
  })
})
