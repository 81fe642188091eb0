// Small durable files: written whole or not at all, readable by their owner alone.
// For keys, tokens and kubeconfigs. The store has its own files and its own rules.
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_DIRECTORY = 0o700
const OTHERS = 0o077

/**
 * Replaces `path` with `text`, mode 0600. A crash at any point leaves the old file or the new one, never a part:
 * the text goes to `<path>.tmp`, is flushed, takes the name, and then the name itself is flushed.
 * A `.tmp` left by an earlier crash is thrown away.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`
  await rm(temporary, { force: true })
  const file = await open(temporary, 'wx', OWNER_ONLY_FILE)
  try {
    await file.chmod(OWNER_ONLY_FILE) // exact, whatever the umask
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** Makes `path` and its parents if missing, and closes `path` to everyone but its owner. */
export async function ensurePrivateDirectory(path: string): Promise<void> {
  await ensureDirectory(path)
  const { mode } = await stat(path)
  if (mode & OTHERS) await chmod(path, OWNER_ONLY_DIRECTORY)
}

/** Makes `path` and its parents if missing, for the owner alone. A directory that was there before is left as it is. */
export async function ensureDirectory(path: string): Promise<void> {
  const firstMade = await makeDirectories(resolve(path))
  if (!firstMade) return

  // Each new name lives in its parent: flush them from the innermost to the first that was there before.
  const outermost = dirname(firstMade)
  for (let parent = dirname(resolve(path)); ; parent = dirname(parent)) {
    await syncDirectory(parent)
    if (parent === outermost) return
  }
}

/**
 * The outermost directory that had to be made, if any. Not node's own recursive mkdir: where the system lets nobody
 * make directories though their parent is there (/proc), that one tries for ever.
 */
async function makeDirectories(path: string, tries = DIRECTORY_DEPTH_MAX): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: OWNER_ONLY_DIRECTORY })
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const known = await stat(path).catch(() => undefined)
    if (known?.isDirectory()) return undefined
    const parent = dirname(path)
    const isParentMissing = (await stat(parent).catch(() => undefined)) === undefined
    if (code !== 'ENOENT' || tries === 0) throw error
    if (!isParentMissing) return makeDirectories(path, Math.min(tries, RACES_MAX) - 1) // someone made it just now
    const outermost = await makeDirectories(parent, tries - 1)
    return (await makeDirectories(path, RACES_MAX)) === undefined ? outermost : (outermost ?? path)
  }
}

/** A parent that is there, and still nothing can be made in it: not a race, but a place that takes no directories. */
const RACES_MAX = 5

/** More parents than this cannot be missing from any path a system takes. */
const DIRECTORY_DEPTH_MAX = 1_000

/** The file's text, or nothing if there is no such file. Every other failure is thrown. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Makes the names in a directory survive a loss of power. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
