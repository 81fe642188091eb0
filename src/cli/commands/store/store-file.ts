// Finds the file of a store in a data directory or in a backup, recognizes archives, and shows the progress of reading a file on
// a terminal.
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../../../base/usage-error.ts'
import { isArchiveFile } from '../../../store/backup/index.ts'
import { isDirectoryInUse, STORE_FILE } from '../../../store/index.ts'

/** Returns the directory of the store. Throws if a process uses it. */
export async function stoppedStoreDir(dataDir: string): Promise<string> {
  const dir = join(dataDir, 'store')
  storeFileOf(dataDir)
  if (await isDirectoryInUse(dir)) {
    throw new UsageError(`A server runs on ${dataDir}. Stop it first; /readyz?verbose names the damage that it knows.`)
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

/** Returns whether the paths are those of archives. Throws if only some are, and if other backups are combined. */
export async function areArchives(paths: readonly string[]): Promise<boolean> {
  const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
  const results = await Promise.all(paths.map(async (path) => isFile(path) && (await isArchiveFile(path))))
  if (results.every(Boolean)) return true
  if (paths.length > 1) {
    throw new UsageError(`${paths[results.indexOf(false)]} is not a backup archive. Only archives can be combined.`)
  }
  return false
}

/** Returns a function that shows the progress, or undefined if standard error is not a terminal. */
export function progressOf(title: string): ((progress: { pagesDone: number; pagesTotal: number }) => void) | undefined {
  const { stderr } = process
  if (!stderr.isTTY) return undefined
  let shownPercent = -1
  return ({ pagesDone, pagesTotal }) => {
    const percent = Math.floor((100 * pagesDone) / Math.max(1, pagesTotal))
    if (percent === shownPercent) return
    shownPercent = percent
    const bar = '#'.repeat(Math.floor(percent / 4)).padEnd(25)
    stderr.write(pagesDone === pagesTotal ? '\r\x1b[K' : `\r${title} [${bar}] ${percent} %`)
  }
}
