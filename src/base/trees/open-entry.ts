// Opens directories and files that other programs may rename or replace at the same time. A path through an open descriptor
// (/proc/self/fd) refers to the opened directory or file, even if its name has been changed or reused. A link at the end of a
// path is not followed.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { errorCode } from '../disk-error.ts'

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

/** Flag of open(2), which Node.js does not define: the descriptor identifies a file without opening it. */
const O_PATH = 0o10000000

/** Flags for open(2) that fail on anything but a directory. */
export const DIRECTORY_ONLY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

/**
 * Flags for open(2) that identify a file of any type, including a link itself, without effects on devices or pipes.
 */
export const ENTRY_ONLY = O_PATH | O_NOFOLLOW

/** Returns the path of an open file or directory. A call that follows links acts on the file itself. */
export const descriptorPath = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Returns the path of an entry of an open directory. Names may be bytes, because they need not be valid UTF-8. */
export const entryPath = (directory: FileHandle, name: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${descriptorPath(directory)}/`), Buffer.from(name)])

/** Returns undefined if the path does not exist or is not a directory. A link is not a directory. */
export const openDirectory = (path: string | Buffer): Promise<FileHandle | undefined> =>
  openIfPresent(path, DIRECTORY_ONLY)

/**
 * Opens a file of any type, including a link itself, without effects on devices or pipes. The handle supports only
 * `stat`, `close` and `descriptorPath`. Returns undefined if the path does not exist.
 */
export const openEntry = (path: string | Buffer): Promise<FileHandle | undefined> => openIfPresent(path, ENTRY_ONLY)

async function openIfPresent(path: string | Buffer, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags)
  } catch (error) {
    if (['ENOTDIR', 'ELOOP', 'ENOENT'].includes(errorCode(error))) return undefined
    throw error
  }
}
