// Small private files (keys, tokens, kubeconfigs): replaced atomically and durably, readable only by their owner. Also creates
// durable directories.
// The store manages its own files (store/lmdb.ts).
import { chmod, link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_DIRECTORY = 0o700
const GROUP_OR_OTHERS = 0o077

/**
 * Replaces the content of `path`, mode 0600. A crash at any point leaves either the old or the new file: the content is
 * written to `<path>.tmp` and synced, the file is renamed, and the directory is synced.
 * Deletes a `.tmp` file left by an earlier crash.
 */
export async function writePrivateFile(path: string, content: string | Uint8Array): Promise<void> {
  const temporaryPath = `${path}.tmp`
  await writeSyncedFile(temporaryPath, content)
  await rename(temporaryPath, path)
  await syncDirectory(dirname(path))
}

/** Creates `path` with this content, mode 0600, unless it exists. Returns whether it was created. */
export async function createPrivateFile(path: string, content: string | Uint8Array): Promise<boolean> {
  const temporaryPath = `${path}.${process.pid}.tmp`
  await writeSyncedFile(temporaryPath, content)
  try {
    await link(temporaryPath, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  } finally {
    await rm(temporaryPath, { force: true })
    await syncDirectory(dirname(path))
  }
}

/** Writes a new file, mode 0600, which replaces an existing one, and syncs its content. */
async function writeSyncedFile(path: string, content: string | Uint8Array): Promise<void> {
  await rm(path, { force: true })
  const file = await open(path, 'wx', OWNER_ONLY_FILE)
  try {
    await file.chmod(OWNER_ONLY_FILE) // exact, regardless of the umask
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Creates `path` and its parents if missing, and restricts `path` to its owner. */
export async function ensurePrivateDirectory(path: string): Promise<void> {
  await ensureDirectory(path)
  const { mode } = await stat(path)
  if (mode & GROUP_OR_OTHERS) await chmod(path, OWNER_ONLY_DIRECTORY)
}

/** Restricts a file to its owner. Throws an error with a remedy if the mode cannot be changed. */
export async function restrictFile(path: string): Promise<void> {
  const { mode } = await stat(path)
  if ((mode & GROUP_OR_OTHERS) === 0) return
  await chmod(path, OWNER_ONLY_FILE).catch((error: Error) => {
    throw new Error(
      `Cannot use ${path}: other users can access it, and its mode cannot be changed (${error.message}). ` +
        `Make it private: chmod 600 ${path}`,
    )
  })
}

/** Creates `path` and its parents if missing, accessible only by the owner. Existing directories are not changed. */
export async function ensureDirectory(path: string): Promise<void> {
  const outermostCreated = await createDirectories(resolve(path))
  if (!outermostCreated) return

  // A new name is an entry of its parent: sync the parents, from the innermost to the first one that already existed.
  const existingParent = dirname(outermostCreated)
  for (let parent = dirname(resolve(path)); ; parent = dirname(parent)) {
    await syncDirectory(parent)
    if (parent === existingParent) return
  }
}

/**
 * Creates the directories and returns the outermost one that it created, if any. The Node.js recursive mkdir is not
 * used: it loops forever if a directory cannot be created although its parent exists (/proc).
 */
async function createDirectories(path: string, attempts = DIRECTORY_DEPTH_MAX): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: OWNER_ONLY_DIRECTORY })
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const stats = await stat(path).catch(() => undefined)
    if (stats?.isDirectory()) return undefined
    const parent = dirname(path)
    const isParentMissing = (await stat(parent).catch(() => undefined)) === undefined
    if (code !== 'ENOENT' || attempts === 0) throw error
    if (!isParentMissing) return createDirectories(path, Math.min(attempts, RACES_MAX) - 1) // created concurrently
    const outermost = await createDirectories(parent, attempts - 1)
    return (await createDirectories(path, RACES_MAX)) === undefined ? outermost : (outermost ?? path)
  }
}

/** After this many retries with an existing parent, the file system is assumed to allow no directories. */
const RACES_MAX = 5

/** The maximum number of missing parents. A path has at most 4,096 bytes, and so at most this many components. */
const DIRECTORY_DEPTH_MAX = 2_048

/** Returns the text of the file, or undefined if the file does not exist. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Syncs a directory, so that its entries survive a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
