// Maps a volume's name to its directory and back. Only the canonical path is accepted. Pure.
//   root /srv/volumes, volume pvc-1  ⇄  /srv/volumes/pvc-1
import { dns1123SubdomainProblems } from '../../../api/names.ts'

/** Leaves space for prefixes within the 255 bytes of a file name. */
const NAME_LENGTH_MAX = 200

/** Returns undefined if the name is not safe in a path. */
export const directoryOf = (root: string, volumeName: string): string | undefined =>
  isSafeName(volumeName) ? `${appendSlash(root)}${volumeName}` : undefined

/** The inverse of `directoryOf`. Returns undefined for any other path. */
export function volumeNameAt(root: string, path: string): string | undefined {
  if (!path.startsWith(appendSlash(root))) return undefined
  const name = path.slice(appendSlash(root).length)
  return isSafeName(name) ? name : undefined
}

/** Whether the name is a DNS subdomain, which has no slashes and no consecutive or leading dots. */
const isSafeName = (name: string): boolean =>
  name.length <= NAME_LENGTH_MAX && dns1123SubdomainProblems(name).length === 0

const appendSlash = (root: string): string => (root.endsWith('/') ? root : `${root}/`)
