// Reads and writes the cgroup file system. A cgroup can disappear at any time, together with its limits; that is not an
// error.
import { constants } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'

/** A node has hundreds. Beyond this the walk fails. */
const CGROUPS_MAX = 50_000

/** Every cgroup from the root down, as paths in the hierarchy: `/`, `/pods`, `/pods/a`. */
export async function allCgroups(root: string): Promise<string[]> {
  const found = ['/']
  for (const cgroup of found) {
    const entries = await readdir(join(root, cgroup), { withFileTypes: true }).catch(ifVanished([]))
    for (const entry of entries) if (entry.isDirectory()) found.push(join(cgroup, entry.name))
    if (found.length > CGROUPS_MAX)
      throw new Error(`Cannot list the cgroups under ${root}: there are more than ${CGROUPS_MAX}.`)
  }
  return found
}

/** Normalizes to an absolute path in the hierarchy; `..` cannot lead out of it. */
export const cgroupPath = (given: string) => {
  const path = normalize(join('/', given))
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** The content of the file; '' if the cgroup or the file does not exist. */
export const readCgroupFile = (root: string, cgroup: string, file: string): Promise<string> =>
  readFile(join(root, cgroup, file), 'utf8').catch(ifVanished(''))

/** Returns false if the cgroup does not exist. */
export async function writeCgroupFile(root: string, cgroup: string, file: string, line: string): Promise<boolean> {
  try {
    // Without O_CREAT: in a cgroup hierarchy only the kernel creates files.
    await writeFile(join(root, cgroup, file), `${line}\n`, { flag: constants.O_WRONLY | constants.O_TRUNC })
    return true
  } catch (error) {
    return ifVanished(false)(error)
  }
}

function ifVanished<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (['ENOENT', 'ENODEV', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return instead
    throw error
  }
}
