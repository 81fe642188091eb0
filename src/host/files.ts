// The files that volumes are made of: reserved or sparse, lengthened, copied, removed. Never shortened: what lies
// beyond the new end would be lost without a word.
import { strict as assert } from 'node:assert'
import { constants } from 'node:fs'
import { copyFile, open, rename, rm, stat, statfs, truncate, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { NoSpaceError, ProgramFailedError } from './errors.ts'
import type { FileSizes, Files } from './host.ts'
import type { Run } from './run.ts'

/** A full copy of a large volume on a slow disk. */
const COPY_TIMEOUT_MS = 24 * 60 * 60_000

const OWNER_ONLY = 0o600

/** `stat` counts blocks of this size, whatever the file system's own. */
const STAT_BLOCK_BYTES = 512

export function createFiles({ run }: { readonly run: Run }): Files {
  return {
    async reserve(path, bytes) {
      const before = await sizes(path)
      neverShrink(path, before, bytes)
      if (before && before.bytes === bytes && before.allocatedBytes >= bytes) return
      await needRoom(path, bytes - (before?.allocatedBytes ?? 0))
      if (!before) await createEmpty(path)
      try {
        await run('fallocate', ['--length', String(bytes), path])
      } catch (error) {
        await takeBack(path, before)
        throw reservationRefused(error, path, bytes)
      }
      await syncFile(path)
      if (!before) await syncDirectory(dirname(path))
    },

    async extend(path, bytes) {
      const before = await sizes(path)
      neverShrink(path, before, bytes)
      if (before?.bytes === bytes) return
      if (!before) await createEmpty(path)
      await truncate(path, bytes)
      await syncFile(path)
      if (!before) await syncDirectory(dirname(path))
    },

    async copy(from, to, { keepFreeBytes = 0 } = {}) {
      if (await sizes(to)) throw new Error(`Cannot copy ${from} to ${to}: there is something already. Move it away.`)
      const part = `${to}.part`
      await rm(part, { force: true })
      const isShared = await reflink(from, part)
      if (!isShared) {
        await needRoom(to, (await writtenBytes(run, from)) + keepFreeBytes)
        await fullCopy(run, from, part)
      }
      await syncFile(part)
      await rename(part, to)
      await syncDirectory(dirname(to))
      return { how: isShared ? 'reflink' : 'full' }
    },

    sizes,

    async remove(path) {
      await unlink(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
      await syncDirectory(dirname(path))
    },

    syncFile,
    syncDirectory,
  }
}

function neverShrink(path: string, before: FileSizes | undefined, bytes: number): void {
  assert(Number.isSafeInteger(bytes) && bytes > 0, `the size of ${path} must be a positive number of bytes: ${bytes}`)
  assert(!before || before.bytes <= bytes, `${path} has ${before?.bytes} bytes and must not be cut to ${bytes}`)
}

/** Refused here, a request that is too large does not fill the pool to the brim first, where others write. */
async function needRoom(path: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path))
  if (bytes > bavail * bsize) throw noSpace(path, bytes, bavail * bsize)
}

async function createEmpty(path: string): Promise<void> {
  const file = await open(path, 'a', OWNER_ONLY)
  await file.close()
}

/** What a refused reservation took is given back: the new file, or the part beyond the old end, which no one has seen. */
async function takeBack(path: string, before: FileSizes | undefined): Promise<void> {
  if (before) await truncate(path, before.bytes)
  else await rm(path, { force: true })
}

function reservationRefused(error: unknown, path: string, bytes: number): unknown {
  if (!(error instanceof ProgramFailedError)) return error
  if (/no space left|file too large/i.test(error.stderr)) return noSpace(path, bytes)
  if (!/not supported/i.test(error.stderr)) return error
  const advice = 'Use a pool on xfs, ext4 or btrfs, or a class with thin provisioning.'
  return new Error(`Cannot reserve ${bytes} bytes for ${path}: the pool's file system cannot reserve space. ${advice}`)
}

const noSpace = (path: string, bytes: number, availableBytes?: number) =>
  new NoSpaceError(
    `Cannot take ${bytes} bytes for ${path}: the pool ${
      availableBytes === undefined ? 'has not that much left' : `has ${availableBytes} bytes left`
    }. Delete volumes or snapshots, or give the pool more space.`,
  )

/** True if the pool let both files share their blocks. */
async function reflink(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch (error) {
    await rm(to, { force: true })
    if (CANNOT_SHARE.includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

const CANNOT_SHARE = ['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV', 'EINVAL', 'ENOTTY']

async function fullCopy(run: Run, from: string, to: string): Promise<void> {
  try {
    await run('cp', ['--reflink=never', '--sparse=always', '--', from, to], { timeoutMs: COPY_TIMEOUT_MS })
  } catch (error) {
    await rm(to, { force: true })
    if (error instanceof ProgramFailedError && /no space left/i.test(error.stderr)) {
      throw new NoSpaceError(
        `Cannot copy ${from}: the pool is full. Delete volumes or snapshots, or give it more space.`,
      )
    }
    throw error
  }
}

/**
 * What a copy without holes takes at most. Space that was reserved and never written to is no part of it, and only the
 * list of extents tells that apart; where there is none, all that is allocated counts.
 *    0:        0..   32767:      34816..     67583:  32768:             unwritten,last,eof
 */
async function writtenBytes(run: Run, path: string): Promise<number> {
  const allocatedBytes = (await sizes(path))?.allocatedBytes ?? 0
  try {
    const { stdout } = await run('filefrag', ['-v', `-b${EXTENT_UNIT_BYTES}`, path])
    return Math.min(allocatedBytes, parseExtents(stdout) ?? allocatedBytes)
  } catch {
    return allocatedBytes
  }
}

const EXTENT_UNIT_BYTES = 4096

export function parseExtents(text: string): number | undefined {
  const rows = text.split('\n').flatMap((line) => {
    const [, , , length, ...flags] = line.split(':')
    return /^\s*\d+:/.test(line) && length !== undefined ? [{ blocks: Number(length), flags: flags.join(':') }] : []
  })
  if (rows.length === 0 || rows.some(({ blocks }) => Number.isNaN(blocks))) return undefined
  const written = rows.filter(({ flags }) => !flags.includes('unwritten'))
  return written.reduce((sum, { blocks }) => sum + blocks * EXTENT_UNIT_BYTES, 0)
}

async function sizes(path: string): Promise<FileSizes | undefined> {
  try {
    const { size, blocks } = await stat(path)
    return { bytes: size, allocatedBytes: blocks * STAT_BLOCK_BYTES }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

const syncDirectory = syncFile // a directory is opened and flushed the same way
