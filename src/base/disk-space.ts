// Checks that a file system has room before files are created on it: LMDB and mmap end the process with SIGBUS or SIGSEGV
// on a full disk, before a message can be printed.
import { stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const KIB = 1_024

/** Throws unless the file system of the existing directory `path` has at least `neededBytes` available. */
export async function requireDiskSpace(path: string, neededBytes: number): Promise<void> {
  const { bavail, bfree, bsize } = await statfs(path)
  const availableBytes = (process.getuid?.() === 0 ? bfree : bavail) * bsize
  if (availableBytes >= neededBytes) return
  throw new Error(
    `The disk is full: the file system mounted at ${await mountPointOf(path)}, which holds ${path}, has ` +
      `${toKib(availableBytes)} KiB available. At least ${toKib(neededBytes)} KiB are needed: free another ` +
      `${toKib(neededBytes - availableBytes)} KiB, or choose a directory on another disk.`,
  )
}

const toKib = (bytes: number): number => Math.ceil(bytes / KIB)

async function mountPointOf(path: string): Promise<string> {
  const { dev } = await stat(path)
  let mountPoint = resolve(path)
  while (dirname(mountPoint) !== mountPoint && (await stat(dirname(mountPoint))).dev === dev)
    mountPoint = dirname(mountPoint)
  return mountPoint
}
