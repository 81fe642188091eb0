// Finds the file of a store in a data directory or in a backup, and recognizes archives.
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../../../base/usage-error.ts'
import { isArchiveFile } from '../../../store/backup/index.ts'
import { isDirectoryInUse, STORE_FILE } from '../../../store/index.ts'

/** Returns the store's directory. Throws if it contains no store, or if a process uses it. */
export async function requireStoppedStore(dataDir: string): Promise<string> {
  const dir = join(dataDir, 'store')
  storeFileOf(dataDir)
  if (await isDirectoryInUse(dir)) {
    throw new UsageError(`A server runs on ${dataDir}. Stop it first; /readyz?verbose lists the known damage.`)
  }
  return dir
}

/** Returns the file of the store in a data directory or a backup, or the path itself if it is a file. */
export function storeFileOf(path: string): string {
  const absolute = resolve(path)
  if (existsSync(absolute) && statSync(absolute).isFile()) return absolute
  const file = join(absolute, 'store', STORE_FILE)
  if (!existsSync(file)) throw new UsageError(`There is no embedded store in ${absolute}: ${file} does not exist.`)
  return file
}

/** Returns whether all paths are archives. Throws if there are several paths and one of them is not an archive. */
export async function areArchives(paths: readonly string[]): Promise<boolean> {
  const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
  const results = await Promise.all(paths.map(async (path) => isFile(path) && (await isArchiveFile(path))))
  if (results.every(Boolean)) return true
  if (paths.length > 1) {
    throw new UsageError(`${paths[results.indexOf(false)]} is not a backup archive. Only archives can be combined.`)
  }
  return false
}
