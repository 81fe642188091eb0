import { execFileSync } from 'node:child_process'
import { mkdtemp, open, readdir, readFile, rm, stat, statfs, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { FileTooLargeError, NoSpaceError, ProgramFailedError } from './errors.ts'
import { createFiles, parseExtents } from './files.ts'
import { createRun, type Run } from './run.ts'

const MIB = 1024 * 1024
const files = createFiles({ run: createRun({ clock: systemClock() }) })

let pool: string
let file: string

beforeEach(async () => {
  pool = await mkdtemp(join(tmpdir(), 'stowage-files-'))
  file = join(pool, 'volume')
})
afterEach(() => rm(pool, { recursive: true, force: true }))

const createFailingRun = (stderr: string): Run => {
  return async (program) => {
    // Like a failing fallocate, it extends the file by a part of the requested size.
    await truncate(file, 3 * MIB)
    throw new ProgramFailedError([program], { code: 1, stderr, reason: 'exited with 1' })
  }
}

describe('reserve', () => {
  it('allocates all blocks of a private file, and is idempotent', async () => {
    await files.reserve(file, 8 * MIB)
    await files.reserve(file, 8 * MIB)
    const sizes = await files.sizes(file)
    expect(sizes?.bytes).toBe(8 * MIB)
    expect(sizes?.allocatedBytes).toBeGreaterThanOrEqual(8 * MIB)
    expect((await stat(file)).mode & 0o077).toBe(0)
  })

  it('REX-1 keeps the data of a file that it extends', async () => {
    await files.reserve(file, 4 * MIB)
    await writeAt(file, 'the data', 4 * MIB - 8)
    await files.reserve(file, 8 * MIB)
    expect((await readFile(file)).subarray(4 * MIB - 8, 4 * MIB).toString()).toBe('the data')
    expect((await files.sizes(file))?.allocatedBytes).toBeGreaterThanOrEqual(8 * MIB)
  })

  it('fails without leaving a file if the pool is too small', async () => {
    const { bavail, bsize } = await statfs(pool)
    await expect(files.reserve(file, bavail * bsize + 1024 * MIB)).rejects.toThrow(NoSpaceError)
    expect(await readdir(pool)).toEqual([])
  })

  it('leaves no file if the allocation fails halfway', async () => {
    const failingFiles = createFiles({ run: createFailingRun('fallocate: fallocate failed: No space left on device') })
    await expect(failingFiles.reserve(file, 8 * MIB)).rejects.toThrow(NoSpaceError)
    expect(await readdir(pool)).toEqual([])
  })

  it('keeps the old size and data if an extension fails halfway', async () => {
    await writeFile(file, Buffer.alloc(2 * MIB, 7))
    const failingFiles = createFiles({ run: createFailingRun('fallocate: fallocate failed: No space left on device') })
    await expect(failingFiles.reserve(file, 8 * MIB)).rejects.toThrow('Cannot allocate 8388608 bytes')
    expect((await readFile(file)).equals(Buffer.alloc(2 * MIB, 7))).toBe(true)
  })

  it('blames the limit of the file size, not the pool, for EFBIG', async () => {
    const failingFiles = createFiles({ run: createFailingRun('fallocate: fallocate failed: File too large') })
    const reservation = failingFiles.reserve(file, 8 * MIB)
    await expect(reservation).rejects.toThrow(FileTooLargeError)
    await expect(reservation).rejects.toThrow(
      "a limit of the driver's process (ulimit -f) does not allow a file of this size",
    )
    expect(await readdir(pool)).toEqual([])
  })

  it('fails with advice on a file system without fallocate', async () => {
    const failingFiles = createFiles({ run: createFailingRun('fallocate: fallocate failed: Operation not supported') })
    await expect(failingFiles.reserve(file, 8 * MIB)).rejects.toThrow('or a class with thin provisioning')
  })
})

describe('extend', () => {
  it('creates a sparse file without allocated blocks', async () => {
    await files.extend(file, 1024 * MIB)
    expect(await files.sizes(file)).toMatchObject({ bytes: 1024 * MIB, allocatedBytes: 0 })
  })

  it('throws FileTooLargeError beyond the limit of the file size, and changes neither a new nor an existing file', async () => {
    limitFileSize(String(8 * MIB))
    onTestFinished(() => limitFileSize('unlimited'))
    await expect(files.extend(file, 16 * MIB)).rejects.toThrow(FileTooLargeError)
    expect(await readdir(pool)).toEqual([])
    await writeFile(file, 'the data')
    await expect(files.extend(file, 16 * MIB)).rejects.toThrow(FileTooLargeError)
    expect(await readFile(file, 'utf8')).toBe('the data')
  })
})

/** Sets the soft limit of this process. Node.js ignores SIGXFSZ, so writes beyond the limit fail with EFBIG. */
function limitFileSize(limit: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:`])
}

describe('checks of the size', () => {
  it.each(['reserve', 'extend'] as const)('prevent %s from truncating a file', async (method) => {
    await writeFile(file, Buffer.alloc(2 * MIB, 7))
    await expect(files[method](file, MIB)).rejects.toThrow('must not be truncated to 1048576')
    expect((await files.sizes(file))?.bytes).toBe(2 * MIB)
  })

  it.each([0, -1, 1.5, Number.NaN, 2 ** 60])('reject the size %s', async (bytes) => {
    await expect(files.extend(file, bytes)).rejects.toThrow('must be a positive number of bytes')
    expect(await files.sizes(file)).toBeUndefined()
  })
})

describe('copy', () => {
  it('copies bytes and holes, and does not overwrite an existing file', async () => {
    await files.extend(file, 64 * MIB)
    await writeAt(file, 'the data', 32 * MIB)
    const copy = join(pool, 'copy')
    expect(['reflink', 'full']).toContain((await files.copy(file, copy)).method)
    expect((await readFile(copy)).equals(await readFile(file))).toBe(true)
    expect((await files.sizes(copy))?.allocatedBytes).toBeLessThan(MIB)
    await expect(files.copy(file, copy)).rejects.toThrow(/the target exists/)
  })

  it('restarts a copy that a crash interrupted', async () => {
    await writeFile(file, 'the whole')
    await writeFile(join(pool, 'copy.part'), 'the wh')
    await files.copy(file, join(pool, 'copy'))
    expect(await readFile(join(pool, 'copy'), 'utf8')).toBe('the whole')
    expect((await readdir(pool)).sort()).toEqual(['copy', 'volume'])
  })

  it('leaves no file if the source is missing', async () => {
    await expect(files.copy(join(pool, 'missing'), join(pool, 'copy'))).rejects.toThrow()
    expect(await readdir(pool)).toEqual([])
  })
})

it('parseExtents counts only written extents', () => {
  const output = [
    'Filesystem type is: ef53',
    'File size of /pool/volume is 209715200 (51200 blocks of 4096 bytes)',
    ' ext:     logical_offset:        physical_offset: length:   expected: flags:',
    '   0:        0..    1023:      34816..     35839:   1024:            ',
    '   1:     1024..   51199:      35840..     86015:  50176:      40000: last,unwritten,eof',
    '/pool/volume: 1 extent found',
  ]
  expect(parseExtents(output.join('\n'))).toBe(4 * MIB)
  expect(parseExtents('filefrag: FIBMAP unsupported')).toBeUndefined()
})

it('remove is idempotent', async () => {
  await writeFile(file, 'data')
  await files.remove(file)
  await files.remove(file)
  expect(await readdir(pool)).toEqual([])
})

async function writeAt(path: string, text: string, position: number): Promise<void> {
  const handle = await open(path, 'r+')
  await handle.write(text, position)
  await handle.close()
}
