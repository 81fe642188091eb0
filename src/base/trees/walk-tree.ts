// Visits a directory tree that other programs may change at the same time, without leaving it: each directory is opened
// relative to its open parent, and links are not followed.
import type { Dirent } from 'node:fs'
import { type FileHandle, opendir } from 'node:fs/promises'
import { errorCode } from '../disk-error.ts'
import { descriptorPath, entryPath, openDirectory } from './open-entry.ts'

/** Each level has an open descriptor. Deeper directories cannot be visited. */
const DEPTH_MAX = 1_000

export type TreeStep =
  /** Before the entries of a directory. The name of the root is empty. */
  | { readonly is: 'directory'; readonly name: Buffer; readonly directory: FileHandle }
  /** Any entry that is not a directory. The path leads through the descriptor of its directory. */
  | { readonly is: 'file'; readonly name: Buffer; readonly path: Buffer }
  /** After the entries of a directory. */
  | { readonly is: 'end of directory'; readonly directory: FileHandle }

export interface WalkOptions {
  /** Returns whether to visit a directory below the root. Default: all are visited. */
  canEnter?(directory: FileHandle): Promise<boolean>
  /** Called for each directory that is skipped: too deep, or not readable for this process. Default: the walk fails. */
  onSkip?(): void
}

/** Walks the tree below an open directory, which the caller closes. Directories that disappear during the walk are skipped. */
export async function* walkTree(root: FileHandle, options: WalkOptions = {}): AsyncGenerator<TreeStep> {
  yield* walkDirectory({ directory: root, name: Buffer.alloc(0), depth: 0 }, options)
}

interface Level {
  readonly directory: FileHandle
  readonly name: Buffer
  readonly depth: number
}

async function* walkDirectory({ directory, name, depth }: Level, options: WalkOptions): AsyncGenerator<TreeStep> {
  yield { is: 'directory', name, directory }
  const subdirectories: Buffer[] = []
  for await (const entry of readEntries(directory)) {
    if (entry.isDirectory) subdirectories.push(entry.name)
    else yield { is: 'file', name: entry.name, path: entryPath(directory, entry.name) }
  }
  for (const subdirectory of subdirectories) {
    const child = await openSubdirectory(depth + 1, entryPath(directory, subdirectory), options)
    if (!child) continue
    try {
      if (options.canEnter && !(await options.canEnter(child))) continue
      yield* walkDirectory({ directory: child, name: subdirectory, depth: depth + 1 }, options)
    } finally {
      await child.close()
    }
  }
  yield { is: 'end of directory', directory }
}

async function* readEntries(directory: FileHandle): AsyncGenerator<{ name: Buffer; isDirectory: boolean }> {
  const entries = await opendir(descriptorPath(directory), { encoding: 'buffer' as BufferEncoding })
  for await (const entry of entries as AsyncIterable<Dirent>) {
    yield { name: entry.name as unknown as Buffer, isDirectory: entry.isDirectory() }
  }
}

async function openSubdirectory(depth: number, path: Buffer, { onSkip }: WalkOptions): Promise<FileHandle | undefined> {
  try {
    if (depth > DEPTH_MAX) throw new TooDeepError(`The tree has more than ${DEPTH_MAX} levels of directories.`)
    return await openDirectory(path)
  } catch (error) {
    if (!onSkip || !(error instanceof TooDeepError || ['EACCES', 'EPERM'].includes(errorCode(error)))) throw error
    onSkip()
    return undefined
  }
}

class TooDeepError extends Error {}
