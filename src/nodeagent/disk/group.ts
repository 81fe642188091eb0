// Applies fsGroup to a volume: every file gets the group and group permissions, directories also setgid. Links themselves
// are changed, never their targets.
import { chmod, lchown, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { GroupOptions } from './disk.ts'

const READ_WRITE = 0o660
const READ_ONLY = 0o440
const EXECUTE = 0o110
const SET_GROUP = 0o2000

export async function giveToGroup(root: string, { group, readOnly, onlyOnRootMismatch }: GroupOptions): Promise<void> {
  if (onlyOnRootMismatch && (await isGiven(root, group, readOnly))) return
  // The root is changed last: after an interruption it still shows that work is left (OnRootMismatch).
  const pending = [root]
  const directories: string[] = []
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    directories.push(directory)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) pending.push(path)
      else await give(path, group, readOnly)
    }
  }
  for (const directory of directories.reverse()) await give(directory, group, readOnly)
}

async function isGiven(root: string, group: number, readOnly: boolean): Promise<boolean> {
  const { gid, mode } = await lstat(root)
  const wanted = rightsOf(true, readOnly)
  return gid === group && (mode & wanted) === wanted
}

async function give(path: string, group: number, readOnly: boolean): Promise<void> {
  const found = await lstat(path).catch(ifGone)
  if (!found) return
  await lchown(path, -1, group).catch(ifGone)
  if (found.isSymbolicLink()) return
  await chmod(path, (found.mode & 0o7777) | rightsOf(found.isDirectory(), readOnly)).catch(ifGone)
}

const rightsOf = (isDirectory: boolean, readOnly: boolean): number =>
  (readOnly ? READ_ONLY : READ_WRITE) | (isDirectory ? EXECUTE | SET_GROUP : 0)

/** Files may be deleted concurrently. */
function ifGone(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
