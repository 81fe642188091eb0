import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { afterEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { manualClock } from '../base/manual-clock.ts'
import { openLmdbStore } from './lmdb.ts'
import { inspectStore } from './records/inspect-store.ts'
import { storeContract } from './store.contract.ts'
import { bundleChild, type Child, type ChildProgram, runChild } from './testing/run-child.ts'
import { advanceUntil, joinNextBatch, put, text } from './testing/store.fixture.ts'

const KILLS = Number(process.env.CRASH_KILLS ?? 10)
const mountSkipMessage = skipReason(await probeThisMachine(), ['mount'])
const dirs: string[] = []
const children: Child[] = []
const programs: ChildProgram[] = []
afterEach(async () => {
  for (const child of children.splice(0)) child.process.kill('SIGKILL')
  await Promise.all(programs.splice(0).map((program) => program.remove()))
  await Promise.all(dirs.splice(0).map((dir) => rm(dir, { recursive: true, force: true })))
})

async function createDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-store-'))
  dirs.push(dir)
  return dir
}

async function bundle(name: string): Promise<ChildProgram> {
  const program = await bundleChild(name)
  programs.push(program)
  return program
}

function startChild(command: readonly string[]): Child {
  const child = runChild(command)
  children.push(child)
  return child
}

const clock = manualClock()

describe('LMDB store', () => {
  storeContract(
    async () => {
      const dir = await createDir()
      return (options) => openLmdbStore({ dir, ...options })
    },
    { runs: 15 },
  )

  it('SYS-20 finds no damage in an intact store while it writes, compacts and scrubs', async () => {
    const scrubClock = manualClock()
    const dir = await createDir()
    const options = { clock: scrubClock, scrubBytesPerSecond: 2 ** 30, history: { keepMs: 10, entriesMax: 100 } }
    const store = await openLmdbStore({ dir, ...options })
    const write = (round: number, index: number) =>
      put(store, `k/${(round * 7 + index) % 500}`, `${round}`.repeat(index % 40 === 0 ? 6_000 : 300))
    for (let round = 0; round < 150; round++) {
      const writes = Promise.all(Array.from({ length: 40 }, (_, index) => write(round, index)))
      await scrubClock.advance(30_000)
      await writes
    }
    const { scrub, damagedRecords } = store.stats()
    expect(scrub?.passes).toBeGreaterThan(20)
    expect(damagedRecords).toBe(0)
    await store.close()
  })

  it('creates a directory and file that only the owner can access', async () => {
    const dir = join(await createDir(), 'nested', 'data')
    const store = await openLmdbStore({ dir, clock })
    await put(store, 'a')
    expect((await stat(dir)).mode & 0o777).toBe(0o700)
    expect((await stat(join(dir, 'store.mdb'))).mode & 0o777).toBe(0o600)
    await store.close()
    expect(await readdir(dir)).toEqual(['store.mdb', 'store.mdb-lock'])
  })

  it('replaces a table of readers that has holes, which would raise SIGBUS on a full disk', async () => {
    const dir = await createDir()
    const path = join(dir, 'store.mdb-lock')
    await writeFile(path, '')
    await truncate(path, 8_272) // a file with holes, as LMDB creates it
    const store = await openLmdbStore({ dir, clock })
    await put(store, 'a')
    const { blocks, size } = await stat(path)
    expect(blocks * 512).toBeGreaterThanOrEqual(size)
    await store.close()
  })

  it('extends its file for many small commits at once', async () => {
    const dir = await createDir()
    const store = await openLmdbStore({ dir, clock })
    const sizes = new Set<number>()
    for (let index = 0; index < 600; index++) {
      if (index % 100 === 0) joinNextBatch(store)
      await store.transact(() => [{ put: `k/${index}`, value: Buffer.alloc(1_000, `${index} `) }])
      sizes.add(store.stats().bytesOnDisk)
    }
    expect(sizes.size).toBeLessThan(15)
    await store.close()
    expect(inspectStore({ path: join(dir, 'store.mdb') })).toMatchObject({ damagedRecords: [], damagedPages: [] })
    const reopenedStore = await openLmdbStore({ dir, clock })
    const { entries } = await reopenedStore.list({ prefix: 'k/' })
    expect(entries).toHaveLength(600)
    for (const { key, value } of entries) expect(value).toEqual(Buffer.alloc(1_000, `${key.slice(2)} `))
    await reopenedStore.close()
  })

  it('reuses the disk space of compacted records', async () => {
    const ownClock = manualClock()
    const store = await openLmdbStore({ dir: await createDir(), clock: ownClock, history: { entriesMax: 200 } })
    const overwriteAll = async (round: number) => {
      const value = Buffer.alloc(1_500, `${round}`)
      await Promise.all(Array.from({ length: 500 }, (_, index) => store.transact(() => [{ put: `k/${index}`, value }])))
    }
    for (let round = 0; round < 10; round++) await overwriteAll(round)
    const initialBytes = store.stats().bytesOnDisk
    for (let round = 0; round < 60; round++) await overwriteAll(round)
    await advanceUntil(ownClock, () => store.stats().historyEntries <= 200)
    expect(store.stats().bytesOnDisk).toBeLessThan(initialBytes * 1.5)
    await store.close()
  })
})

describe('a directory in use', () => {
  it('cannot be opened by a second process until the first one exits', async () => {
    const dir = await createDir()
    const program = await bundle('open-store-child.ts')
    const holder = startChild([...program.command, dir])
    expect(await holder.nextLine()).toBe('open')

    await expect(openLmdbStore({ dir, clock })).rejects.toThrow(
      `The directory ${dir} is in use by another Stowage process (pid ${holder.process.pid}).`,
    )
    holder.process.kill('SIGKILL')
    await holder.whenExited()
    expect((await readdir(dir)).filter((name) => name.startsWith('lock-'))).toHaveLength(1) // a stale lock
    const store = await openLmdbStore({ dir, clock })
    await put(store, 'a')
    await store.close()
  })

  it('cannot be opened by a second store of the same process', async () => {
    const dir = await createDir()
    const store = await openLmdbStore({ dir, clock })
    await expect(openLmdbStore({ dir, clock })).rejects.toThrow(`(pid ${process.pid})`)
    await put(store, 'a')
    await store.close()
    await (await openLmdbStore({ dir, clock })).close()
  })

  it('is opened by at most one of many concurrent attempts', async () => {
    const dir = await createDir()
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => openLmdbStore({ dir, clock })))
    const stores = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    expect(stores.length).toBeLessThanOrEqual(1)
    await Promise.all(stores.map((store) => store.close()))
    await (await openLmdbStore({ dir, clock })).close()
  })
})

describe('opening a store file', () => {
  async function createFilledDir(): Promise<string> {
    const dir = await createDir()
    const store = await openLmdbStore({ dir, clock })
    await store.transact(() =>
      Array.from({ length: 300 }, (_, index) => ({ put: `k/${index}`, value: Buffer.alloc(index % 10 ? 500 : 9_000) })),
    )
    await store.close()
    return dir
  }
  const openAndClose = async (dir: string) => (await openLmdbStore({ dir, clock })).close()

  it('fails if the file is not an LMDB file', async () => {
    const dir = await createDir()
    await writeFile(join(dir, 'store.mdb'), 'This is not a database. '.repeat(1_000))
    await expect(openAndClose(dir)).rejects.toThrow(`${dir}/store.mdb is not a Stowage store: it is not an LMDB file.`)
    await writeFile(join(dir, 'store.mdb'), 'short')
    await expect(openAndClose(dir)).rejects.toThrow('is not a Stowage store')
  })

  it('fails if the LMDB file belongs to another program', async () => {
    const dir = await createDir()
    const foreignDb = openLmdb({ path: join(dir, 'store.mdb'), noSubdir: true, overlappingSync: false })
    await foreignDb.put('some key', { some: 'value' })
    await foreignDb.close()
    await expect(openAndClose(dir)).rejects.toThrow('it belongs to another program, or its description is damaged')
  })

  it.each([0.1, 0.3, 0.5, 0.7, 0.9, 0.99])('fails if the file is truncated to %f of its size', async (fraction) => {
    const dir = await createFilledDir()
    const path = join(dir, 'store.mdb')
    await truncate(path, Math.floor((await stat(path)).size * fraction))
    await expect(openAndClose(dir)).rejects.toThrow(`${path} is damaged: page`)
  })

  it('succeeds if only free pages are missing at the end', async () => {
    const dir = await createFilledDir()
    const path = join(dir, 'store.mdb')
    const content = await readFile(path)
    // Increase the page count in the meta pages by one page that no tree refers to.
    for (const meta of [0, 4_096]) {
      const index = meta + 24 + 120
      content.writeBigUInt64LE(content.readBigUInt64LE(index) + 1n, index)
    }
    await writeFile(path, content)
    const store = await openLmdbStore({ dir, clock })
    expect(store.stats().keys).toBe(300)
    await put(store, 'more')
    await store.close()
  })

  it.each([
    [
      'the store has an unknown format',
      [0, 0],
      JSON.stringify({ store: 'stowage', format: 7 }),
      'is a store of format 7, which a newer version of Stowage wrote; this version reads formats up to 3',
    ],
    [
      'a record is shorter than its header',
      [1, 5],
      '\u0009 …',
      'record 5 ("") is damaged: its header has only 5 bytes',
    ],
  ])('fails if %s', async (_, name, content, message) => {
    const dir = await createFilledDir()
    const key = Buffer.alloc(7)
    key[0] = name[0] as number
    key.writeUIntBE(name[1] as number, 1, 6)
    const file = openLmdb({
      path: join(dir, 'store.mdb'),
      noSubdir: true,
      overlappingSync: false,
      encoding: 'binary',
      keyEncoding: 'binary',
    })
    await file.put(key, Buffer.from(content))
    await file.close()
    await expect(openAndClose(dir)).rejects.toThrow(message)
  })
})

/** Whether each write is alone in its batch, so that it is committed in the thread of the event loop. */
const BATCHES = ['alone', 'shared']

describe('durability', () => {
  it.for(BATCHES)('SYS-1 acknowledges a write only after it is synced to disk (batch: %s)', async (batch, test) => {
    if (!hasStrace() && !process.env.CI) test.skip('strace is not installed')
    const program = await bundle('durability-child.ts')
    const dir = await createDir()
    const log = join(await createDir(), 'trace')
    const calls = 'openat,write,pwrite64,writev,pwritev,fdatasync,fsync,msync'
    const tracedChild = startChild([
      'strace',
      '-f',
      '-s',
      '100000',
      '-o',
      log,
      '-e',
      `trace=${calls}`,
      ...program.command,
      dir,
      '40',
      batch,
    ])
    expect(await tracedChild.whenExited()).toEqual({ code: 0, signal: null })
    expect(tracedChild.lines).toHaveLength(40)
    const trace = await readFile(log, 'latin1')
    expectSyncedBeforeAcknowledged(trace, 40)
    // The thread that prints is that of the event loop.
    const [, thread] = /^(\d+) +write\(1, "ack 1/m.exec(trace) ?? []
    const syncs = trace.match(new RegExp(`^${thread} +fdatasync\\(`, 'gm'))?.length ?? 0
    if (batch === 'alone') expect(syncs).toBeGreaterThanOrEqual(40)
    else expect(syncs).toBeLessThan(40)
  })

  it.each([20, 1])(
    `SYS-1 loses no part of a transaction of %d writers when the process is killed ${KILLS} times`,
    {
      timeout: 120_000 + KILLS * 5_000,
    },
    async (writers) => {
      const program = await bundle('crash-child.ts')
      const dir = await createDir()
      const acknowledgedNumbers = new Map<string, number>()
      let total = 0
      for (let kill = 0; kill < KILLS; kill++) {
        const child = startChild([...program.command, dir, String(writers)])
        expect(await child.nextLine()).toBe('ready')
        const linesBeforeKill = 50 + ((kill * 97) % 970)
        for (let line = 0; line < linesBeforeKill; line++) await child.nextLine()
        child.process.kill('SIGKILL')
        expect((await child.whenExited()).signal, child.errors()).toBe('SIGKILL')
        for (const line of child.lines.slice(1)) {
          const [, writer, n] = /^ack (\d+) (\d+)$/.exec(line) ?? []
          if (writer) acknowledgedNumbers.set(writer, Number(n)) // the last line may be truncated
        }
        total += child.lines.length - 1

        const { damagedRecords, damagedPages } = inspectStore({ path: join(dir, 'store.mdb') })
        expect({ damagedRecords, damagedPages }).toEqual({ damagedRecords: [], damagedPages: [] })
        const store = await openLmdbStore({ dir, clock: manualClock() })
        for (const [writer, n] of acknowledgedNumbers) {
          const [a, b, c] = (await store.list({ prefix: `w/${writer}/` })).entries.map(text)
          expect(Number(a?.split('.')[0])).toBeGreaterThanOrEqual(n)
          expect(b).toBe(a)
          expect(c).toBe(a)
        }
        await store.close()
      }
      console.log(`${KILLS} kills, ${total} acknowledged transactions, 0 lost`)
      expect(acknowledgedNumbers.size).toBe(writers)
      expect(total).toBeGreaterThan(KILLS * 400)
    },
  )

  /** Expects that a child process wrote until it was rejected, then read and wrote, and that its store has all its writes. */
  async function expectRejectedAtLimit(
    command: readonly string[],
    dir: string,
    { reason, makeRoom = () => {} }: { readonly reason: RegExp; readonly makeRoom?: () => void },
  ): Promise<void> {
    const child = startChild(command)
    expect(await child.whenExited(), child.errors()).toEqual({ code: 0, signal: null })
    const [rejectedLine = '', writtenLine = '', ...otherLines] = child.lines
    expect(rejectedLine).toMatch(/^rejected WriteRejectedError nothing was written: .*store\.mdb: /)
    expect(rejectedLine).toMatch(reason)
    expect(writtenLine).toMatch(/^written (\d+) revision \1 keys \1$/)
    expect(otherLines).toEqual(['read 10000', 'small true'])
    expect(child.errors()).not.toContain('node_modules/lmdb')
    makeRoom()
    const store = await openLmdbStore({ dir, clock: manualClock() })
    const { entries } = await store.list({ prefix: 'k/' })
    expect(entries.map(({ value }) => value.length).sort((a, b) => a - b)).toEqual([
      'small'.length,
      ...Array(Number(writtenLine.split(' ')[1]) - 1).fill(10_000),
    ])
    await store.close()
  }

  it.each(BATCHES)(
    'SYS-1 rejects a write beyond the file size limit (batch: %s), and serves reads and smaller writes',
    async (batch) => {
      const program = await bundle('full-disk-child.ts')
      const dir = await createDir()
      const limit = ['sh', '-c', 'trap "" XFSZ; ulimit -f 2048; exec "$@"', 'sh']
      await expectRejectedAtLimit([...limit, ...program.command, dir, batch], dir, {
        reason: /the file has reached the file size limit|a write was incomplete/,
      })
    },
  )

  describe.skipIf(mountSkipMessage).each(BATCHES)(`a full disk (batch: %s)`, (batch) => {
    it(`SYS-1 rejects a write, and serves reads and smaller writes${mountSkipMessage ? ` (${mountSkipMessage})` : ''}`, async () => {
      const program = await bundle('full-disk-child.ts')
      const disk = await createDir()
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
      try {
        const dir = join(disk, 'store')
        await expectRejectedAtLimit([...program.command, dir, batch], dir, {
          reason: /the disk is full/,
          makeRoom: () => execFileSync('mount', ['-o', 'remount,size=8m', disk]), // a store opens only with free space
        })
      } finally {
        execFileSync('umount', [disk])
      }
    })
  })
})

function hasStrace(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Expects the trace to show for each transaction n, in this order: its bytes are written to the data file; the data file
 * is synced; the meta page is written through a descriptor opened with O_DSYNC; `ack n` is printed. A system call that
 * strace splits into "unfinished" and "resumed" counts when it is resumed, that is, when it returns.
 */
function expectSyncedBeforeAcknowledged(trace: string, transactions: number): void {
  const states = new Map<number, 'written' | 'synced' | 'valid'>()
  const files = new Map<string, { isData: boolean; isSynchronous: boolean }>()
  const unfinishedCalls = new Map<string, string>()
  const advanceStates = (fromState: string | undefined, toState: 'synced' | 'valid') => {
    for (const [n, state] of states) if (state === fromState) states.set(n, toState)
  }
  let acknowledgedCount = 0
  for (const line of trace.split('\n')) {
    const [, thread = '', callText = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    if (callText.endsWith('<unfinished ...>')) {
      unfinishedCalls.set(thread, callText.replace(/ *<unfinished \.\.\.>$/, ''))
      continue
    }
    const resumedCall = /^<\.\.\. \w+ resumed> ?(.*)$/.exec(callText)
    const call = resumedCall ? `${unfinishedCalls.get(thread)}${resumedCall[1]}` : callText
    const [, name = '', fd = ''] = /^(\w+)\((\w+)/.exec(call) ?? []
    if (name === 'openat') {
      const openedFile = /store\.mdb", ([A-Z_|]+).* = (\d+)$/.exec(call)
      if (openedFile?.[2])
        files.set(openedFile[2], { isData: true, isSynchronous: /O_D?SYNC/.test(openedFile[1] as string) })
    } else if (/^p?writev?(64)?$/.test(name) && files.get(fd)?.isData) {
      const isMeta = files.get(fd)?.isSynchronous
      if (isMeta) advanceStates('synced', 'valid')
      else {
        for (const [, n] of call.matchAll(/transaction (\d+)\./g)) {
          if (states.get(Number(n)) === undefined) states.set(Number(n), 'written')
        }
      }
    } else if (/^f(data)?sync$/.test(name) && files.get(fd)?.isData) {
      expect(call).toMatch(/= 0$/)
      advanceStates('written', 'synced')
    } else if (name === 'write') {
      const ack = /^write\(1, "ack (\d+)\\n"/.exec(call)
      if (!ack) continue
      expect(states.get(Number(ack[1])), `transaction ${ack[1]} when it is acknowledged`).toBe('valid')
      acknowledgedCount++
    }
  }
  expect(acknowledgedCount).toBe(transactions)
}
