// A directory tree around the directories that a component may change. Tests of hostile input compare it before and after.
import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Paths in the surroundings that hostile input names. A careless program would replace, remove, mount over or follow them. */
export const SURROUNDING_PATHS = [
  'file',
  'empty-file',
  'directory',
  'directory/file',
  'empty-directory',
  'link',
  'new',
  'new/deep',
]

export async function createSurroundings(directory: string): Promise<void> {
  await mkdir(join(directory, 'directory'), { recursive: true })
  await mkdir(join(directory, 'empty-directory'), { mode: 0o700 })
  await writeFile(join(directory, 'file'), 'content', { mode: 0o600 })
  await writeFile(join(directory, 'empty-file'), '')
  await writeFile(join(directory, 'directory', 'file'), 'content')
  await symlink('directory', join(directory, 'link'))
}

/** Returns the attributes and content of all files below the directory, by path, except the excluded names at its top. */
export async function readSurroundings(
  directory: string,
  excluded: readonly string[] = [],
): Promise<Record<string, string>> {
  const entries: Record<string, string> = {}
  for (const name of await readdir(directory)) {
    if (excluded.includes(name)) continue
    const path = join(directory, name)
    const { ino, dev, mode, uid, gid, size, mtimeMs } = await lstat(path)
    const kind = mode & 0o170000
    let content = ''
    if (kind === 0o040000) Object.assign(entries, await readSurroundings(path))
    else if (kind === 0o120000) content = await readlink(path)
    else if (kind === 0o100000) content = await readFile(path, 'utf8')
    entries[path] = JSON.stringify({ ino, dev, mode, uid, gid, size, mtimeMs, content })
  }
  return entries
}
