// Opens a path inside a volume, and creates its missing directories. Because the volume may contain symbolic links that lead
// out of it, each part of the path is opened relative to its open parent directory, without following links. The target of a
// link replaces it in the path, which is then opened from the volume's root again; it must not lead out of the volume.
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../base/disk-error.ts'
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
  const volumeRoot = await realpath(root) // the root itself may be a link, created by the driver
  let parts = splitSubPath(subPath)
  for (let links = 0; links <= LINKS_MAX; links++) {
    const opened = await openParts(volumeRoot, parts, subPath)
    if ('file' in opened) {
      try {
        return await use(opened.file, join(volumeRoot, ...parts))
      } finally {
        await opened.file.close()
      }
    }
    // The path of a hostPath volume starts at the root directory, and its links were already resolved.
    if (volumeRoot === '/') throw linkError(parts[opened.index]!, subPath)
    parts = followLink(parts, opened, subPath)
  }
  throw new SubPathError(`subPath ${quote(subPath)} has more than ${LINKS_MAX} links`)
}

/** A path with more links is rejected, as by the kernel. */
const LINKS_MAX = 40

type OpenedParts = { readonly file: FileHandle } | FoundLink

interface FoundLink {
  /** The position of the link in the path. */
  readonly index: number
  readonly target: string
}

/** Opens the path, or returns the first link in it. */
async function openParts(volumeRoot: string, parts: readonly string[], subPath: string): Promise<OpenedParts> {
  let currentHandle = await open(volumeRoot, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const mode = (await currentHandle.stat()).mode & MODE_BITS
    for (const [index, part] of parts.entries()) {
      const target = await readLink(currentHandle, part)
      if (target !== undefined) {
        await currentHandle.close()
        return { index, target }
      }
      const nextHandle = await openPart(currentHandle, part, { subPath, mode, isLast: index === parts.length - 1 })
      await currentHandle.close()
      currentHandle = nextHandle
    }
    return { file: currentHandle }
  } catch (error) {
    await currentHandle.close()
    throw error
  }
}

/** Returns the target of a link, or undefined if the entry is not a link. */
async function readLink(directory: FileHandle, part: string): Promise<string | undefined> {
  try {
    return await readlink(entryPath(directory, part))
  } catch (error) {
    if (['EINVAL', 'ENOENT', 'ENOTDIR'].includes(errorCode(error))) return undefined
    throw error
  }
}

/** Returns the parts of the path with the target in place of the link. */
function followLink(parts: readonly string[], { index, target }: FoundLink, subPath: string): string[] {
  const error = () =>
    new SubPathError(`subPath ${quote(subPath)} contains a link to ${quote(target)}, which is not within the volume`)
  if (target.startsWith('/')) throw error()
  const result = parts.slice(0, index)
  for (const part of target.split('/').filter((name) => name !== '' && name !== '.')) {
    if (part !== '..') result.push(part)
    else if (result.pop() === undefined) throw error()
  }
  return [...result, ...parts.slice(index + 1)]
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

/** Creates an empty file in an open directory, unless an entry with this name exists. */
export async function createFile(directory: FileHandle, name: string, mode: number): Promise<void> {
  try {
    const file = await open(entryPath(directory, name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
    await file.close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const quote = (text: string) => JSON.stringify(text)
