// Restricts the paths at which volumes are staged and published to directories that the operator names (--target-root), so that
// no request and no damaged record makes the driver create, mount or remove anything elsewhere.
import { isAbsolute, normalize } from 'node:path'
import { isWithin, resolvePath } from '../../base/trees/resolve-path.ts'
import { invalid, quote } from '../errors.ts'
import type { MountRecord } from '../pool/records.ts'

export interface TargetRoots {
  /** Throws INVALID_ARGUMENT if the path, with its links resolved, is not in one of the directories. */
  check(path: string, field: string): Promise<void>
  /** Returns a problem of a mount record whose paths are not in one of the directories. */
  findProblem(record: MountRecord): string | undefined
}

/** `directories` are absolute. If there are none, all paths are allowed. */
export async function createTargetRoots(directories: readonly string[]): Promise<TargetRoots> {
  const roots = await Promise.all(directories.map(resolvePath))
  const isAllowed = (path: string) =>
    roots.length === 0 || [...roots, ...directories].some((root) => path !== root && isWithin(path, root))
  return {
    async check(path, field) {
      if (isAllowed(path) && isAllowed(await resolvePath(path))) return
      throw invalid(
        `${field} ${quote(path)} is not in ${directories.join(' or ')}. Use a path there, or start the driver with another --target-root.`,
      )
    },
    findProblem({ staged, published }) {
      const paths = [...(staged ? [staged] : []), ...published].map(({ path }) => path)
      const path = paths.find((path) => !isAbsolute(path) || normalize(path) !== path || !isAllowed(path))
      return path === undefined ? undefined : `its path ${quote(path)} is not one at which volumes are mounted`
    },
  }
}
