// Which directory a volume has, and which volume a path belongs to: each the inverse of the other. Pure.
//   /srv/volumes + pvc-1  ⇄  /srv/volumes/pvc-1      anything else, however it is spelled, is no volume's directory
import { dns1123SubdomainProblems } from '../../../api/names.ts'

/** So that the name still fits into a file system with what we put before it. */
const NAME_LENGTH_MAX = 200

/** Nothing for a name that must not become a path. */
export const directoryOf = (root: string, volumeName: string): string | undefined =>
  isName(volumeName) ? `${withSlash(root)}${volumeName}` : undefined

/** Nothing for a path that is not, letter by letter, one that `directoryOf` gives. */
export function nameBehind(root: string, path: string): string | undefined {
  if (!path.startsWith(withSlash(root))) return undefined
  const name = path.slice(withSlash(root).length)
  return isName(name) ? name : undefined
}

/** Starts with a letter or digit, and has neither slashes nor two dots in a row. */
const isName = (name: string): boolean => name.length <= NAME_LENGTH_MAX && dns1123SubdomainProblems(name).length === 0

const withSlash = (root: string): string => (root.endsWith('/') ? root : `${root}/`)
