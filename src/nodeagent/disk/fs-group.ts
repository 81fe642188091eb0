// Applies fsGroup to a volume: sets the group and the group permissions of all files, and setgid on directories. Does not
// follow links.
import { chmod, lchown, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { GroupOptions } from './disk.ts'

const READ_WRITE = 0o660
const READ_ONLY = 0o440
const EXECUTE = 0o110
const SET_GROUP = 0o2000

export async function applyFsGroup(root: string, { group, readOnly, onlyOnRootMismatch }: GroupOptions): Promise<void> {
  if (onlyOnRootMismatch && (await isApplied(root, group, readOnly))) return
  // Change the root last, so that OnRootMismatch detects a change that was interrupted.
  const pending = [root]
  const directories: string[] = []
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    directories.push(directory)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) pending.push(path)
      else await applyToPath(path, group, readOnly)
    }
  }
  for (const directory of directories.reverse()) await applyToPath(directory, group, readOnly)
}

async function isApplied(root: string, group: number, readOnly: boolean): Promise<boolean> {
  const { gid, mode } = await lstat(root)
  const expectedMode = permissionsOf(true, readOnly)
  return gid === group && (mode & expectedMode) === expectedMode
}

async function applyToPath(path: string, group: number, readOnly: boolean): Promise<void> {
  const stats = await lstat(path).catch(ignoreNotFound)
  if (!stats) return
  await lchown(path, -1, group).catch(ignoreNotFound)
  if (stats.isSymbolicLink()) return
  await chmod(path, (stats.mode & 0o7777) | permissionsOf(stats.isDirectory(), readOnly)).catch(ignoreNotFound)
}

const permissionsOf = (isDirectory: boolean, readOnly: boolean): number =>
  (readOnly ? READ_ONLY : READ_WRITE) | (isDirectory ? EXECUTE | SET_GROUP : 0)

/** Ignores files that were deleted concurrently. */
function ignoreNotFound(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
