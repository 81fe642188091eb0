// Resolves links in paths, and checks whether a path is in a directory.
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { errorCode } from '../disk-error.ts'

/**
 * Returns the absolute path with the links in its existing part resolved. Parts that do not exist are kept, and so is a link
 * whose target does not exist: do not create a file through the returned path without checking its last part.
 */
export async function resolvePath(path: string): Promise<string> {
  const missingParts: string[] = []
  for (let ancestor = normalize(path); ; ancestor = dirname(ancestor)) {
    try {
      return join(await realpath(ancestor), ...missingParts)
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error))) throw error
    }
    missingParts.unshift(basename(ancestor))
  }
}

/** Returns whether the path is the directory or in it. Both are absolute and have no links. */
export const isWithin = (path: string, directory: string): boolean =>
  directory === '/' || path === directory || path.startsWith(`${directory}/`)
