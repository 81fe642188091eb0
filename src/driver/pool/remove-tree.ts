// Removes a tree of ours whatever its users did to its permissions: without root a directory that is closed to its own
// owner cannot be emptied, until it is opened again.
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

/** Top down: what is in a closed directory is seen only once it is open. */
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
