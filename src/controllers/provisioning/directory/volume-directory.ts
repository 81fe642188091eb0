// Which directory a volume has, and which volume a path belongs to: each the inverse of the other. Pure.
//   /srv/volumes + pvc-1  ⇄  /srv/volumes/pvc-1      no other spelling is accepted
import { dns1123SubdomainProblems } from '../../../api/names.ts'

/** Leaves space for the prefixes within the 255 bytes of a file name. */
const NAME_LENGTH_MAX = 200

/** Undefined for a name that is not safe in a path. */
export const directoryOf = (root: string, volumeName: string): string | undefined =>
  isSafeName(volumeName) ? `${withSlash(root)}${volumeName}` : undefined

/** Undefined for a path that `directoryOf` does not return exactly. */
export function volumeNameAt(root: string, path: string): string | undefined {
  if (!path.startsWith(withSlash(root))) return undefined
  const name = path.slice(withSlash(root).length)
  return isSafeName(name) ? name : undefined
}

/** Starts with a letter or digit, and has neither slashes nor two dots in a row. */
const isSafeName = (name: string): boolean =>
  name.length <= NAME_LENGTH_MAX && dns1123SubdomainProblems(name).length === 0

const withSlash = (root: string): string => (root.endsWith('/') ? root : `${root}/`)
