// Deletes a directory tree. On Linux it deletes nothing outside the tree, even if another program renames entries at the same
// time: a program that still has the volume mounted could replace a directory with a link between check and use. Therefore each
// directory is opened without following links, and its entries are accessed through the open descriptor.
import { chmod, type FileHandle, opendir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { describeDiskError, errorCode } from '../disk-error.ts'
import { descriptorPath, entryPath, openDirectory, openEntry } from './open-entry.ts'

/** Each level has an open descriptor. Deeper directories are moved to the top first to limit the number of descriptors. */
const DEPTH_MAX = 32
/** Maximum number of passes over a directory. If another program keeps adding files, the deletion fails. */
const PASSES_MAX = 10_000

/** The owner's permissions that are required to delete the entries of a directory, except for root. */
const OWNER_BITS = 0o700

/**
 * Succeeds if the path does not exist. If the path is a link or a file, only the link or the file is removed. Directories of
 * this user that are not writable are made writable.
 */
export async function removeTree(path: string, signal?: AbortSignal): Promise<void> {
  // Other systems have no /proc/self/fd, so a volume must not be in use while it is deleted.
  if (process.platform !== 'linux') return rm(path, { recursive: true, force: true })
  try {
    await removeEntry({ path, displayPath: path, depth: 0 }, { signal })
  } catch (error) {
    if (error instanceof TreeError || signal?.aborted) throw error
    throw new TreeError(describeDiskError('delete', path, error))
  }
}

class TreeError extends Error {}

interface Tree {
  /** The topmost directory. */
  readonly top: FileHandle
  readonly device: number
  readonly signal: AbortSignal | undefined
  movedCount: number
}

interface Entry {
  readonly path: string | Buffer
  /** The path for messages. */
  readonly displayPath: string
  readonly depth: number
}

async function removeEntry({ path, displayPath, depth }: Entry, parent: Tree | Pick<Tree, 'signal'>): Promise<void> {
  parent.signal?.throwIfAborted()
  const directory = await openReadableDirectory(path)
  if (!directory) return ignoreMissing(unlink(path))
  try {
    const { dev, mode } = await directory.stat()
    const tree = 'top' in parent ? parent : { top: directory, device: dev, signal: parent.signal, movedCount: 0 }
    if (dev !== tree.device) throw new TreeError(describeDiskError('delete', displayPath, { code: 'EXDEV' }))
    if ((mode & OWNER_BITS) !== OWNER_BITS) await directory.chmod(OWNER_BITS).catch(ignoreDenied)
    await emptyDirectory(directory, { displayPath, depth }, tree)
  } finally {
    await directory.close()
  }
  await ignoreMissing(rmdir(path))
}

async function emptyDirectory(
  directory: FileHandle,
  { displayPath, depth }: Omit<Entry, 'path'>,
  tree: Tree,
): Promise<void> {
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    let isEmpty = true
    for await (const entry of await opendir(descriptorPath(directory), { encoding: 'buffer' as BufferEncoding })) {
      isEmpty = false
      const name = entry.name as unknown as Buffer // names need not be valid UTF-8
      const path = entryPath(directory, name)
      const child = { path, displayPath: `${displayPath}/${name.toString('utf8')}`, depth: depth + 1 }
      try {
        if (depth >= DEPTH_MAX && entry.isDirectory()) await moveUp(path, tree)
        else await removeEntry(child, tree)
      } catch (error) {
        if (error instanceof TreeError || tree.signal?.aborted) throw error
        throw new TreeError(describeDiskError('delete', child.displayPath, error))
      }
    }
    if (isEmpty) return
  }
  throw new TreeError(
    `Cannot delete ${displayPath}: another program keeps writing to it. Stop the programs that use the volume.`,
  )
}

/** Opens a directory, after making it readable if necessary. Returns undefined if the path is not a directory. */
async function openReadableDirectory(path: string | Buffer): Promise<FileHandle | undefined> {
  try {
    return await openDirectory(path)
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error
    const entry = await openEntry(path)
    if (!entry) return undefined
    try {
      if ((await entry.stat()).isDirectory()) await chmod(descriptorPath(entry), OWNER_BITS)
    } finally {
      await entry.close()
    }
    return openDirectory(path)
  }
}

async function moveUp(path: Buffer, tree: Tree): Promise<void> {
  for (;;) {
    try {
      await rename(path, entryPath(tree.top, `.moved-up-${tree.movedCount++}`))
      return
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return
      if (!['EEXIST', 'ENOTEMPTY', 'ENOTDIR', 'EISDIR'].includes(errorCode(error))) throw error
    }
  }
}

const ignoreMissing = (removal: Promise<void>): Promise<void> =>
  removal.catch((error) => {
    if (errorCode(error) !== 'ENOENT') throw error
  })

/** Only a directory's owner can change its mode. If the process cannot write to it, the deletion of an entry fails. */
function ignoreDenied(error: unknown): void {
  if (!['EPERM', 'EROFS'].includes(errorCode(error))) throw error
}
