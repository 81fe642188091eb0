// Removes a directory tree regardless of its permissions. Without root, a directory that its owner cannot write to must be made
// writable before its entries can be removed.
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await makeWritable(path)
    await rm(path, { recursive: true, force: true })
  }
}

/** Changes the modes from the top down, because a directory may be readable only after its mode is changed. */
async function makeWritable(root: string): Promise<void> {
  const pending = [root]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    if (!(await lstat(directory)).isDirectory()) continue
    await chmod(directory, 0o700)
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) pending.push(join(directory, entry.name))
    }
  }
}
