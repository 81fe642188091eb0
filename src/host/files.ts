// Image files of volumes: reserve, extend (sparse), copy, remove. Files are never truncated, because that would silently
// lose data.
import { strict as assert } from 'node:assert'
import { constants } from 'node:fs'
import { copyFile, open, rename, rm, stat, statfs, truncate, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { NoSpaceError, ProgramFailedError } from './errors.ts'
import type { FileSizes, Files } from './host.ts'
import type { Run } from './run.ts'

/** Enough for a full copy of a large volume on a slow disk. */
const COPY_TIMEOUT_MS = 24 * 60 * 60_000

const OWNER_ONLY = 0o600

/** The unit of `blocks` in stat, regardless of the block size of the file system. */
const STAT_BLOCK_BYTES = 512

export function createFiles({ run }: { readonly run: Run }): Files {
  return {
    async reserve(path, bytes) {
      const before = await sizes(path)
      checkSize(path, before, bytes)
      if (before && before.bytes === bytes && before.allocatedBytes >= bytes) return
      await requireSpace(path, bytes - (before?.allocatedBytes ?? 0))
      if (!before) await createEmpty(path)
      try {
        await run('fallocate', ['--length', String(bytes), path])
      } catch (error) {
        await rollBack(path, before)
        throw explainReserveError(error, path, bytes)
      }
      await syncFile(path)
      if (!before) await syncDirectory(dirname(path))
    },

    async extend(path, bytes) {
      const before = await sizes(path)
      checkSize(path, before, bytes)
      if (before?.bytes === bytes) return
      if (!before) await createEmpty(path)
      await truncate(path, bytes)
      await syncFile(path)
      if (!before) await syncDirectory(dirname(path))
    },

    async copy(from, to, { keepFreeBytes = 0 } = {}) {
      if (await sizes(to)) throw new Error(`Cannot copy ${from} to ${to}: the target exists. Move it away.`)
      const part = `${to}.part`
      await rm(part, { force: true })
      const isShared = await reflink(from, part)
      if (!isShared) {
        await requireSpace(to, (await writtenBytes(run, from)) + keepFreeBytes)
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

function checkSize(path: string, before: FileSizes | undefined, bytes: number): void {
  assert(Number.isSafeInteger(bytes) && bytes > 0, `the size of ${path} must be a positive number of bytes: ${bytes}`)
  assert(!before || before.bytes <= bytes, `${path} has ${before?.bytes} bytes and must not be truncated to ${bytes}`)
}

/** Checks first, so that a request that is too large does not temporarily fill the pool and fail other writers. */
async function requireSpace(path: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path))
  if (bytes > bavail * bsize) throw noSpace(path, bytes, bavail * bsize)
}

async function createEmpty(path: string): Promise<void> {
  const file = await open(path, 'a', OWNER_ONLY)
  await file.close()
}

/** Undoes a failed reservation: removes a new file, or truncates an old one to its previous size. */
async function rollBack(path: string, before: FileSizes | undefined): Promise<void> {
  if (before) await truncate(path, before.bytes)
  else await rm(path, { force: true })
}

function explainReserveError(error: unknown, path: string, bytes: number): unknown {
  if (!(error instanceof ProgramFailedError)) return error
  if (/no space left|file too large/i.test(error.stderr)) return noSpace(path, bytes)
  if (!/not supported/i.test(error.stderr)) return error
  const advice = 'Use a pool on xfs, ext4 or btrfs, or a class with thin provisioning.'
  return new Error(
    `Cannot reserve ${bytes} bytes for ${path}: the file system of the pool does not support fallocate. ${advice}`,
  )
}

const noSpace = (path: string, bytes: number, availableBytes?: number) =>
  new NoSpaceError(
    `Cannot allocate ${bytes} bytes for ${path}: the pool ${
      availableBytes === undefined ? 'does not have enough space' : `has ${availableBytes} bytes left`
    }. Delete volumes or snapshots, or give the pool more space.`,
  )

/** Returns false if the file system does not support reflinks. */
async function reflink(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch (error) {
    await rm(to, { force: true })
    if (NO_REFLINK.includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

const NO_REFLINK = ['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV', 'EINVAL', 'ENOTTY']

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
 * The maximum space that a copy needs. Blocks that are reserved but were never written are not copied; only the extent
 * list of filefrag shows them. Without it, all allocated blocks count.
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

const syncDirectory = syncFile // fsync works the same way on a directory
