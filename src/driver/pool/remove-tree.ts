// Removes a directory tree regardless of the permissions in it. Without root, a directory without write permission for its
// owner cannot be emptied until its mode is changed.
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await openDirectories(path)
    await rm(path, { recursive: true, force: true })
  }
}

/** Top down, because the content of a directory is readable only after its mode is changed. */
async function openDirectories(root: string): Promise<void> {
  const left = [root]
  for (let directory = left.pop(); directory !== undefined; directory = left.pop()) {
    if (!(await lstat(directory)).isDirectory()) continue
    await chmod(directory, 0o700)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) left.push(join(directory, entry.name))
    }
  }
}
