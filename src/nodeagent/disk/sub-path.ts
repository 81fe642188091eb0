// Opens a path inside a volume, and creates missing directories of it. Because the volume may contain symbolic links that lead
// out of it, each part of the path is opened relative to its open parent directory, and symbolic links are rejected.
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { DIRECTORY_ONLY, ENTRY_ONLY, entryPath } from '../../base/trees/open-entry.ts'
import { SubPathError } from './disk.ts'

/** The mode bits that a created directory inherits from the volume. */
const MODE_BITS = 0o2777

export const makeSubPath = (root: string, subPath: string): Promise<string> =>
  withSubPath(root, subPath, async (_opened, path) => path)

/** Calls `use` with the open subPath. `/proc/<pid>/fd/<fd>` refers to it even if it is renamed. */
export async function withSubPath<T>(
  root: string,
  subPath: string,
  use: (file: FileHandle, path: string) => Promise<T>,
): Promise<T> {
  const parts = splitSubPath(subPath)
  const volumeRoot = await realpath(root) // the root itself may be a link, created by the driver
  let currentHandle = await open(volumeRoot, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const mode = (await currentHandle.stat()).mode & MODE_BITS
    for (const [index, part] of parts.entries()) {
      const nextHandle = await openPart(currentHandle, part, { subPath, mode, isLast: index === parts.length - 1 })
      await currentHandle.close()
      currentHandle = nextHandle
    }
    return await use(currentHandle, join(volumeRoot, ...parts))
  } finally {
    await currentHandle.close()
  }
}

/** Splits a subPath into its parts: `a/b/` and `a//b` become `['a', 'b']`. Throws SubPathError for an invalid subPath. */
export function splitSubPath(subPath: string): string[] {
  const parts = subPath.split('/').filter((part) => part !== '' && part !== '.')
  if (subPath.startsWith('/')) throw new SubPathError(`subPath ${quote(subPath)} must not be an absolute path`)
  if (parts.includes('..')) throw new SubPathError(`subPath ${quote(subPath)} must not contain ".."`)
  if (subPath.includes('\0')) throw new SubPathError('subPath must not contain a NUL byte')
  return parts
}

async function openPart(
  directory: FileHandle,
  part: string,
  { subPath, mode, isLast }: { readonly subPath: string; readonly mode: number; readonly isLast: boolean },
): Promise<FileHandle> {
  const path = entryPath(directory, part)
  try {
    if (!isLast) return await open(path, DIRECTORY_ONLY)
    const file = await open(path, ENTRY_ONLY)
    if (!(await file.stat()).isSymbolicLink()) return file
    await file.close()
    throw linkError(part, subPath)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') {
      const isCreated = await mkdir(path, { mode }).then(
        () => true,
        (failure: NodeJS.ErrnoException) => {
          if (failure.code !== 'EEXIST') throw failure
          return false // created by another process in the meantime
        },
      )
      const createdDirectory = await open(path, DIRECTORY_ONLY).catch((failure) => {
        throw toSubPathError(failure, part, subPath)
      })
      if (isCreated) await createdDirectory.chmod(mode) // restore the bits that the umask removed
      return createdDirectory
    }
    throw toSubPathError(error as NodeJS.ErrnoException, part, subPath)
  }
}

function toSubPathError(error: NodeJS.ErrnoException, part: string, subPath: string): Error {
  if (error.code === 'ELOOP' || error.code === 'EMLINK') {
    return linkError(part, subPath)
  }
  if (error.code === 'ENOTDIR') {
    // With O_DIRECTORY, opening a link fails with ENOTDIR.
    return new SubPathError(`subPath ${quote(subPath)} contains ${quote(part)}, which is not a directory`)
  }
  return error
}

const linkError = (part: string, subPath: string) =>
  new SubPathError(`subPath ${quote(subPath)} contains the link ${quote(part)}, which is not followed`)

/** Creates an empty file in an open directory, unless an entry of this name exists. */
export async function createFile(directory: FileHandle, name: string, mode: number): Promise<void> {
  try {
    const file = await open(entryPath(directory, name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
    await file.close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const quote = (text: string) => JSON.stringify(text)
