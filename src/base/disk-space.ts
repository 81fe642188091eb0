// Describes the space of a file system, and checks that it has room before files are created on it: LMDB and mmap end the
// process with SIGBUS or SIGSEGV on a full disk, before a message can be printed.
import { open, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const KIB = 1_024

/** Returns a description of the space on the file system of the existing file or directory `path`. */
export async function describeDiskSpace(path: string): Promise<string> {
  const availableBytes = await readAvailableBytes(path)
  return `the file system mounted at ${await findMountPoint(path)} has ${toKib(availableBytes)} KiB available`
}

/** Throws unless the file system of the existing directory `path` has at least `neededBytes` available. */
export async function requireDiskSpace(path: string, neededBytes: number): Promise<void> {
  const availableBytes = await readAvailableBytes(path)
  if (availableBytes >= neededBytes) return
  throw new Error(
    `The disk is full: the file system mounted at ${await findMountPoint(path)}, which holds ${path}, has ` +
      `${toKib(availableBytes)} KiB available. At least ${toKib(neededBytes)} KiB are needed: free another ` +
      `${toKib(neededBytes - availableBytes)} KiB, or choose a directory on another disk.`,
  )
}

/**
 * Throws unless `neededBytes` can be written in the existing directory `dir`. Writes a file of this size and deletes it,
 * because the space that a file system reports does not reflect quotas.
 */
export async function requireWritableSpace(dir: string, neededBytes: number): Promise<void> {
  await requireDiskSpace(dir, neededBytes)
  const path = join(dir, `space-${process.pid}.tmp`)
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(Buffer.alloc(neededBytes))
    await file.sync()
  } catch (error) {
    throw new Error(
      `Cannot write ${toKib(neededBytes)} KiB in ${dir}: ${(error as Error).message}; ${await describeDiskSpace(dir)}. ` +
        'Free disk space or raise the quota, or choose a directory on another disk.',
      { cause: error },
    )
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}

async function readAvailableBytes(path: string): Promise<number> {
  const { bavail, bfree, bsize } = await statfs(path)
  return (process.getuid?.() === 0 ? bfree : bavail) * bsize
}

const toKib = (bytes: number): number => Math.ceil(bytes / KIB)

async function findMountPoint(path: string): Promise<string> {
  const { dev } = await stat(path)
  let mountPoint = resolve(path)
  while (dirname(mountPoint) !== mountPoint && (await stat(dirname(mountPoint))).dev === dev)
    mountPoint = dirname(mountPoint)
  return mountPoint
}
