// Applies fsGroup to a volume: sets the group, the permissions of the owner and the group, and setgid on directories. Changes
// every file through an open descriptor, because a pod that uses the volume could replace a file with a link to a file of the
// host.
import { constants, type Stats } from 'node:fs'
import { chmod, chown, type FileHandle, open } from 'node:fs/promises'
import { descriptorPath, openEntry } from '../../base/trees/open-entry.ts'
import { walkTree } from '../../base/trees/walk-tree.ts'
import type { GroupOptions } from './disk.ts'

const READ_WRITE = 0o660
const READ_ONLY = 0o440
const EXECUTE = 0o110
const SETGID = 0o2000
const MODE_BITS = 0o7777

export async function applyFsGroup(root: string, options: GroupOptions): Promise<void> {
  // The path itself may be a link, which the driver created in a directory that pods cannot write to.
  const directory = await open(root, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    if (options.onlyOnRootMismatch && isApplied(await directory.stat(), options)) return
    // The root is changed last, so that OnRootMismatch detects a change that was interrupted.
    for await (const step of walkTree(directory)) {
      if (step.is === 'file') await applyToPath(step.path, options)
      else if (step.is === 'end of directory') await applyToFile(step.directory, options)
    }
  } finally {
    await directory.close()
  }
}

function isApplied({ gid, mode }: Stats, { group, readOnly }: GroupOptions): boolean {
  const expectedMode = permissionsOf(true, readOnly)
  return gid === group && (mode & expectedMode) === expectedMode
}

async function applyToPath(path: Buffer, options: GroupOptions): Promise<void> {
  const file = await openEntry(path)
  if (!file) return // deleted in the meantime
  try {
    await applyToFile(file, options)
  } finally {
    await file.close()
  }
}

async function applyToFile(file: FileHandle, { group, readOnly }: GroupOptions): Promise<void> {
  const stats = await file.stat()
  const hasGroup = stats.gid === group
  if (!hasGroup) await chown(descriptorPath(file), -1, group)
  if (stats.isSymbolicLink()) return
  const mode = stats.mode & MODE_BITS
  const nextMode = mode | permissionsOf(stats.isDirectory(), readOnly)
  if (nextMode !== mode || !hasGroup) await chmod(descriptorPath(file), nextMode) // chown removes setuid and setgid
}

const permissionsOf = (isDirectory: boolean, readOnly: boolean): number =>
  (readOnly ? READ_ONLY : READ_WRITE) | (isDirectory ? EXECUTE | SETGID : 0)
