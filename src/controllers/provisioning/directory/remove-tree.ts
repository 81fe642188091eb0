// Deletes a directory tree and nothing outside of it, even if another program renames entries in the tree. A program that
// still has the volume mounted could replace a directory by a link between check and use. Therefore each directory is
// opened without following links, and its entries are accessed through the open descriptor (/proc/self/fd).
import { constants } from 'node:fs'
import { type FileHandle, open, opendir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { describeDiskError, errorCode } from './disk-error.ts'

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants

/** Flags for open(2) that fail on anything but a directory. */
export const DIRECTORY_ONLY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

/** Each level has an open descriptor. Deeper directories are moved to the top first to limit the number of descriptors. */
const DEPTH_MAX = 32
/** Maximum number of passes over a directory. If another program keeps adding files, the deletion fails. */
const PASSES_MAX = 10_000

/** Succeeds if the path does not exist. If the path is a link or a file, only that is removed. */
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
  /** Path of the topmost directory through its open descriptor. */
  readonly top: string
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
  const directory = await openDirectory(path)
  if (!directory) return ignoreMissing(unlink(path))
  try {
    const descriptorPath = `/proc/self/fd/${directory.fd}`
    const { dev } = await directory.stat()
    const tree = 'top' in parent ? parent : { top: descriptorPath, device: dev, signal: parent.signal, movedCount: 0 }
    if (dev !== tree.device) throw new TreeError(describeDiskError('delete', displayPath, { code: 'EXDEV' }))
    await emptyDirectory({ path: descriptorPath, displayPath, depth }, tree)
  } finally {
    await directory.close()
  }
  await ignoreMissing(rmdir(path))
}

async function emptyDirectory({ path: descriptorPath, displayPath, depth }: Entry, tree: Tree): Promise<void> {
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    let isEmpty = true
    for await (const entry of await opendir(`${descriptorPath}`, { encoding: 'buffer' as BufferEncoding })) {
      isEmpty = false
      const name = entry.name as unknown as Buffer // names need not be valid UTF-8
      const path = Buffer.concat([Buffer.from(`${descriptorPath}/`), name])
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

async function moveUp(path: Buffer, tree: Tree): Promise<void> {
  for (;;) {
    try {
      await rename(path, `${tree.top}/.moved-up-${tree.movedCount++}`)
      return
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return
      if (!['EEXIST', 'ENOTEMPTY', 'ENOTDIR', 'EISDIR'].includes(errorCode(error))) throw error
    }
  }
}

async function openDirectory(path: string | Buffer): Promise<FileHandle | undefined> {
  try {
    return await open(path, DIRECTORY_ONLY)
  } catch (error) {
    if (['ENOTDIR', 'ELOOP', 'ENOENT'].includes(errorCode(error))) return undefined
    throw error
  }
}

const ignoreMissing = (removal: Promise<void>): Promise<void> =>
  removal.catch((error) => {
    if (errorCode(error) !== 'ENOENT') throw error
  })
