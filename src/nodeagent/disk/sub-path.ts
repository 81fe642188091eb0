// Opens a path inside a volume without leaving it. Writers of the volume may plant links, so each part is opened relative
// to the directory opened before it, and links are rejected.
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { SubPathError } from './disk.ts'

/** Owner and mode that a created directory inherits from its volume. */
const MODE_BITS = 0o2777
const OPEN_PART = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

export const makeSubPath = (root: string, subPath: string): Promise<string> =>
  withSubPath(root, subPath, async (_opened, path) => path)

/** Runs with the subPath opened: `/proc/<pid>/fd/<fd>` refers to it even if it is renamed. */
export async function withSubPath<T>(
  root: string,
  subPath: string,
  use: (opened: FileHandle, path: string) => Promise<T>,
): Promise<T> {
  const parts = partsOf(subPath)
  const top = await realpath(root) // a directory-backed volume is itself a link, created by its driver
  let at = await open(top, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    const mode = (await at.stat()).mode & MODE_BITS
    for (const [index, part] of parts.entries()) {
      const next = await openPart(at, part, { subPath, mode, isLast: index === parts.length - 1 })
      await at.close()
      at = next
    }
    return await use(at, join(top, ...parts))
  } finally {
    await at.close()
  }
}

/** `a/b/` and `a//b` are `['a', 'b']`. */
export function partsOf(subPath: string): string[] {
  const parts = subPath.split('/').filter((part) => part !== '' && part !== '.')
  if (subPath.startsWith('/')) throw new SubPathError(`subPath ${quote(subPath)} must not be an absolute path`)
  if (parts.includes('..')) throw new SubPathError(`subPath ${quote(subPath)} must not contain ".."`)
  if (subPath.includes('\0')) throw new SubPathError('subPath must not contain a zero byte')
  return parts
}

async function openPart(
  directory: FileHandle,
  part: string,
  { subPath, mode, isLast }: { readonly subPath: string; readonly mode: number; readonly isLast: boolean },
): Promise<FileHandle> {
  // Refers to the opened directory, even if it was moved.
  const path = join('/proc/self/fd', String(directory.fd), part)
  const flags = isLast ? OPEN_PART : OPEN_PART | constants.O_DIRECTORY
  try {
    return await open(path, flags)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') {
      const isOurs = await mkdir(path, { mode }).then(
        () => true,
        (failure: NodeJS.ErrnoException) => {
          if (failure.code !== 'EEXIST') throw failure
          return false // created by another pod meanwhile, or a link now
        },
      )
      const made = await open(path, OPEN_PART | constants.O_DIRECTORY).catch((failure) => {
        throw refusal(failure, part, subPath)
      })
      if (isOurs) await made.chmod(mode) // restore the bits that the umask removed
      return made
    }
    throw refusal(error as NodeJS.ErrnoException, part, subPath)
  }
}

function refusal(error: NodeJS.ErrnoException, part: string, subPath: string): Error {
  if (error.code === 'ELOOP' || error.code === 'EMLINK') {
    return new SubPathError(`subPath ${quote(subPath)} leads through the link ${quote(part)}, which is not followed`)
  }
  if (error.code === 'ENOTDIR') {
    // With O_DIRECTORY, opening a link fails with ENOTDIR.
    return new SubPathError(`subPath ${quote(subPath)} leads through ${quote(part)}, which is not a directory`)
  }
  return error
}

const quote = (text: string) => JSON.stringify(text)
