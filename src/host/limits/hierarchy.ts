// Cgroups as directories: which there are, and how their files are read and written. A cgroup may vanish at any time,
// with all its lines; that is not a failure.
import { constants } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'

/** A node has hundreds. Beyond this we stop looking, and say so, rather than walk for ever. */
const CGROUPS_MAX = 50_000

/** Every cgroup from the root down, as paths in the hierarchy: `/`, `/pods`, `/pods/a`. */
export async function allCgroups(root: string): Promise<string[]> {
  const found = ['/']
  for (const cgroup of found) {
    const entries = await readdir(join(root, cgroup), { withFileTypes: true }).catch(ifVanished([]))
    for (const entry of entries) if (entry.isDirectory()) found.push(join(cgroup, entry.name))
    if (found.length > CGROUPS_MAX) throw new Error(`There are more than ${CGROUPS_MAX} cgroups under ${root}.`)
  }
  return found
}

/** As a path in the hierarchy, whatever came in: `..` leads nowhere above its root. */
export const cgroupPath = (given: string) => {
  const path = normalize(join('/', given))
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** The file's text; '' if the cgroup has no such file or is gone. */
export const readCgroupFile = (root: string, cgroup: string, file: string): Promise<string> =>
  readFile(join(root, cgroup, file), 'utf8').catch(ifVanished(''))

/** True if it was written, false if there is no such cgroup. */
export async function writeCgroupFile(root: string, cgroup: string, file: string, line: string): Promise<boolean> {
  try {
    // Never created: in a hierarchy of cgroups only the kernel makes files.
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
