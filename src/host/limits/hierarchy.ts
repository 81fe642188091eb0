// Reads and writes the cgroup file system. A cgroup can be removed at any time together with its limits, so a missing cgroup
// is not an error.
import { constants } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'

/** Listing more cgroups than this fails. */
const CGROUPS_MAX = 50_000

/** Returns the paths of all cgroups, parents first: `/`, `/pods`, `/pods/a`. */
export async function listCgroups(root: string): Promise<string[]> {
  const cgroups = ['/']
  for (const cgroup of cgroups) {
    const entries = await readdir(join(root, cgroup), { withFileTypes: true }).catch(ignoreMissing([]))
    for (const entry of entries) if (entry.isDirectory()) cgroups.push(join(cgroup, entry.name))
    if (cgroups.length > CGROUPS_MAX)
      throw new Error(`Cannot list the cgroups under ${root}: there are more than ${CGROUPS_MAX}.`)
  }
  return cgroups
}

/** Returns an absolute path in the hierarchy. `..` cannot lead out of the hierarchy. */
export const normalizeCgroupPath = (path: string) => {
  const normalized = normalize(join('/', path))
  return normalized.length > 1 && normalized.endsWith('/') ? normalized.slice(0, -1) : normalized
}

/** Returns the content of the file, which is empty if the cgroup or the file does not exist. */
export const readCgroupFile = (root: string, cgroup: string, file: string): Promise<string> =>
  readFile(join(root, cgroup, file), 'utf8').catch(ignoreMissing(''))

/** Returns false if the cgroup does not exist. */
export async function writeCgroupFile(root: string, cgroup: string, file: string, line: string): Promise<boolean> {
  try {
    // Without O_CREAT, because only the kernel creates files in a cgroup hierarchy.
    await writeFile(join(root, cgroup, file), `${line}\n`, { flag: constants.O_WRONLY | constants.O_TRUNC })
    return true
  } catch (error) {
    return ignoreMissing(false)(error)
  }
}

function ignoreMissing<T>(fallback: T): (error: unknown) => T {
  return (error) => {
    if (['ENOENT', 'ENODEV', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return fallback
    throw error
  }
}
