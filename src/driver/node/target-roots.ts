// Restricts the paths at which volumes are staged and published, and from which they are unstaged and unpublished, to
// directories that the operator names (--target-root).
import { basename, dirname, isAbsolute, join, normalize } from 'node:path'
import { isWithin, resolvePath } from '../../base/trees/resolve-path.ts'
import { invalid, quote } from '../errors.ts'
import type { MountRecord } from '../pool/records.ts'

export interface TargetRoots {
  /** Throws INVALID_ARGUMENT unless the path is in one of the directories, and still is after its links are resolved. */
  check(path: string, field: string): Promise<void>
  /** Returns the problem of a mount record with a path that is not normalized or not in one of the directories. */
  findProblem(record: MountRecord): Promise<string | undefined>
}

/**
 * `directories` are absolute. If there are none, all paths are allowed. A path may itself be a link into `pool`, because the
 * directory backend publishes a volume as a link.
 */
export async function createTargetRoots(directories: readonly string[], pool: string): Promise<TargetRoots> {
  const roots = await Promise.all(directories.map(resolvePath))
  const resolvedPool = await resolvePath(pool)
  const isAllowed = (path: string) => [...roots, ...directories].some((root) => path !== root && isWithin(path, root))
  /** With --target-root, a path that cannot be resolved, for example because it is too long, is rejected. */
  const isInRoots = async (path: string) =>
    directories.length === 0 || (isAllowed(path) && (await isResolvedInRoots(path).catch(() => false)))
  const isResolvedInRoots = async (path: string) => {
    const resolvedPath = await resolvePath(path)
    if (isAllowed(resolvedPath)) return true
    const unresolvedPath = join(await resolvePath(dirname(path)), basename(path))
    return isAllowed(unresolvedPath) && isWithin(resolvedPath, resolvedPool)
  }
  return {
    async check(path, field) {
      if (await isInRoots(path)) return
      throw invalid(
        `${field} ${quote(path)} is not in ${directories.join(' or ')}. Use a path there, or start the driver with another --target-root.`,
      )
    },
    async findProblem({ staged, published }) {
      const paths = [...(staged ? [staged] : []), ...published].map(({ path }) => path)
      for (const path of paths) {
        const isValid = isAbsolute(path) && !path.includes('\0') && normalize(path) === path && (await isInRoots(path))
        if (!isValid) return `the path ${quote(path)} is not one at which volumes may be mounted`
      }
      return undefined
    },
  }
}
