// Reserves, extends, copies and removes the image files of volumes. An existing file never becomes smaller than it was,
// because that would lose data.
import { strict as assert } from 'node:assert'
import { constants } from 'node:fs'
import { copyFile, open, rename, rm, stat, statfs, truncate, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { FileTooLargeError, NoSpaceError, ProgramFailedError } from './errors.ts'
import type { FileSizes, Files } from './host.ts'
import type { Run } from './run.ts'

const COPY_TIMEOUT_MS = 24 * 60 * 60_000

const OWNER_ONLY_MODE = 0o600

/** The unit of `blocks` in stat, regardless of the block size of the file system. */
const STAT_BLOCK_BYTES = 512

export function createFiles({ run }: { readonly run: Run }): Files {
  return {
    async reserve(path, bytes) {
      const currentSizes = await readSizes(path)
      checkSize(path, currentSizes, bytes)
      if (currentSizes && currentSizes.bytes === bytes && currentSizes.allocatedBytes >= bytes) return
      await requireSpace(path, bytes - (currentSizes?.allocatedBytes ?? 0))
      if (!currentSizes) await createEmptyFile(path)
      try {
        await run('fallocate', ['--length', String(bytes), path])
      } catch (error) {
        await rollBack(path, currentSizes)
        throw explainReserveError(error, path, bytes)
      }
      await syncFile(path)
      if (!currentSizes) await syncDirectory(dirname(path))
    },

    async extend(path, bytes) {
      const currentSizes = await readSizes(path)
      checkSize(path, currentSizes, bytes)
      if (currentSizes?.bytes === bytes) return
      if (!currentSizes) await createEmptyFile(path)
      try {
        await truncate(path, bytes)
      } catch (error) {
        await rollBack(path, currentSizes)
        throw (error as NodeJS.ErrnoException).code === 'EFBIG' ? fileTooLargeError(path, bytes) : error
      }
      await syncFile(path)
      if (!currentSizes) await syncDirectory(dirname(path))
    },

    async copy(source, target, { keepFreeBytes = 0 } = {}) {
      if (await readSizes(target))
        throw new Error(`Cannot copy ${source} to ${target}: the target exists. Move it away.`)
      const partialPath = `${target}.part`
      await rm(partialPath, { force: true })
      const isReflink = await reflink(source, partialPath)
      if (!isReflink) {
        await requireSpace(target, (await readWrittenBytes(run, source)) + keepFreeBytes)
        await copyFully(run, source, partialPath)
      }
      await syncFile(partialPath)
      await rename(partialPath, target)
      await syncDirectory(dirname(target))
      return { method: isReflink ? 'reflink' : 'full' }
    },

    sizes: readSizes,

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

function checkSize(path: string, currentSizes: FileSizes | undefined, bytes: number): void {
  assert(Number.isSafeInteger(bytes) && bytes > 0, `the size of ${path} must be a positive number of bytes: ${bytes}`)
  assert(
    !currentSizes || currentSizes.bytes <= bytes,
    `${path} has ${currentSizes?.bytes} bytes and must not be truncated to ${bytes}`,
  )
}

/** Throws if the disk does not have enough space. Without this check, a large request could temporarily fill the pool. */
async function requireSpace(path: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path))
  if (bytes > bavail * bsize) throw noSpaceError(path, bytes, bavail * bsize)
}

async function createEmptyFile(path: string): Promise<void> {
  const file = await open(path, 'a', OWNER_ONLY_MODE)
  await file.close()
}

/** Undoes a failed reserve or extend: removes a new file, or truncates an existing one to its previous size. */
async function rollBack(path: string, previousSizes: FileSizes | undefined): Promise<void> {
  if (previousSizes) await truncate(path, previousSizes.bytes)
  else await rm(path, { force: true })
}

function explainReserveError(error: unknown, path: string, bytes: number): unknown {
  if (!(error instanceof ProgramFailedError)) return error
  if (/no space left/i.test(error.stderr)) return noSpaceError(path, bytes)
  if (/file too large/i.test(error.stderr)) return fileTooLargeError(path, bytes)
  if (!/not supported/i.test(error.stderr)) return error
  const advice = 'Use a pool on xfs, ext4 or btrfs, or a class with thin provisioning.'
  return new Error(
    `Cannot reserve ${bytes} bytes for ${path}: the file system of the pool does not support fallocate. ${advice}`,
  )
}

const noSpaceError = (path: string, bytes: number, availableBytes?: number) =>
  new NoSpaceError(
    `Cannot allocate ${bytes} bytes for ${path}: the pool ${
      availableBytes === undefined ? 'does not have enough space' : `has ${availableBytes} bytes left`
    }. Delete volumes or snapshots, or give the pool more space.`,
  )

const fileTooLargeError = (path: string, bytes: number) =>
  new FileTooLargeError(
    `Cannot allocate ${bytes} bytes for ${path}: the file system of the pool or a limit of the driver's process (ulimit -f) does ` +
      'not allow a file of this size. Request a smaller size, raise the limit, or use a pool on another file system.',
  )

/** Returns false if the file system does not support reflinks. */
async function reflink(source: string, target: string): Promise<boolean> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    return true
  } catch (error) {
    await rm(target, { force: true })
    if (NO_REFLINK.includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

const NO_REFLINK = ['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV', 'EINVAL', 'ENOTTY']

async function copyFully(run: Run, source: string, target: string): Promise<void> {
  try {
    await run('cp', ['--reflink=never', '--sparse=always', '--', source, target], { timeoutMs: COPY_TIMEOUT_MS })
  } catch (error) {
    await rm(target, { force: true })
    if (error instanceof ProgramFailedError && /no space left/i.test(error.stderr)) {
      throw new NoSpaceError(
        `Cannot copy ${source}: the pool is full. Delete volumes or snapshots, or give it more space.`,
      )
    }
    throw error
  }
}

/**
 * Returns the maximum space that a copy needs. Reserved blocks that were never written are not copied, but only the extent
 * list of filefrag shows them. Without filefrag, all allocated blocks are counted. A line of the list:
 *    0:        0..   32767:      34816..     67583:  32768:             unwritten,last,eof
 */
async function readWrittenBytes(run: Run, path: string): Promise<number> {
  const allocatedBytes = (await readSizes(path))?.allocatedBytes ?? 0
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
  const writtenRows = rows.filter(({ flags }) => !flags.includes('unwritten'))
  return writtenRows.reduce((sum, { blocks }) => sum + blocks * EXTENT_UNIT_BYTES, 0)
}

async function readSizes(path: string): Promise<FileSizes | undefined> {
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
