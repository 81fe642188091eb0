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
  const firstMade = await mkdir(path, { recursive: true, mode: OWNER_ONLY_DIRECTORY })
  const { mode } = await stat(path)
  if (mode & OTHERS) await chmod(path, OWNER_ONLY_DIRECTORY)
  if (!firstMade) return

  // Each new name lives in its parent: flush them from the innermost to the first that was there before.
  const outermost = dirname(resolve(firstMade))
  for (let parent = dirname(resolve(path)); ; parent = dirname(parent)) {
    await syncDirectory(parent)
    if (parent === outermost) return
  }
}

/** The file's text, or nothing if there is no such file. Every other failure is thrown. */
export async function readTextIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
