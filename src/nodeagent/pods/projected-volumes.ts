// Writes the files of projected volumes. Each version is a separate directory. The link `..data` points to the current one,
// and the visible names are links through `..data`, so replacing `..data` switches all files at once. If the agent has root
// privileges, a volume with Secrets is a tmpfs.
//   ..2026_01_31_10_20_30.123/  key, dir/key
//   ..data -> ..2026_01_31_10_20_30.123
//   key -> ..data/key           dir -> ..data/dir
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { NodeDisk } from '../disk/disk.ts'
import { splitSubPath } from '../disk/sub-path.ts'
import type { AgentPaths } from '../paths.ts'
import type { ProjectedFile } from './projected-files.ts'

export interface ProjectedVolumeDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly clock: Clock
}

const DIRECTORY_MODE = 0o755
const DATA = '..data'

export interface ProjectedVersion {
  readonly files: ReadonlyMap<string, ProjectedFile>
  readonly hasSecrets: boolean
  /** The group that owns the files. Default: the group of the agent. */
  readonly fsGroup?: number
}

/** Writes the files, unless their digest equals `previousDigest`: the digest of the files that this agent last wrote here. */
export async function writeProjectedVolume(
  uid: string,
  name: string,
  { files, hasSecrets, fsGroup }: ProjectedVersion,
  previousDigest: string | undefined,
  { disk, paths, clock }: ProjectedVolumeDeps,
): Promise<{ readonly path: string; readonly digest: string }> {
  const root = paths.projected(uid, name)
  const digest = digestOf(files)
  if (digest === previousDigest) return { path: root, digest }
  await disk.makeDirectory(root, DIRECTORY_MODE)
  if (hasSecrets && previousDigest === undefined) await disk.mountTmpfs(root).catch(() => {}) // without root privileges: files on disk
  const version = await findUnusedName(root, { disk, clock })
  await disk.makeDirectory(join(root, version), DIRECTORY_MODE)
  for (const [path, file] of files) {
    const target = join(root, version, ...splitSubPath(path)) // throws if the path would lead out of the volume
    await disk.makeDirectory(dirname(target), DIRECTORY_MODE)
    await disk.writeFile(target, file.content, file.mode, file.user)
  }
  if (fsGroup !== undefined) {
    await disk.applyFsGroup(join(root, version), { group: fsGroup, readOnly: true, onlyOnRootMismatch: false })
  }
  await disk.link(version, join(root, DATA))
  const visibleNames = new Set([...files.keys()].map((path) => splitSubPath(path)[0]!))
  for (const visibleName of visibleNames) {
    // Earlier releases of the agent wrote directories instead of links.
    if ((await disk.kindOf(join(root, visibleName))) === 'directory') await disk.removeTree(join(root, visibleName))
    await disk.link(join(DATA, visibleName), join(root, visibleName))
  }
  for (const entry of await disk.list(root)) {
    if (entry === DATA || entry === version || visibleNames.has(entry)) continue
    const isDirectory = (await disk.kindOf(join(root, entry))) === 'directory'
    await (isDirectory ? disk.removeTree(join(root, entry)) : disk.removeFile(join(root, entry)))
  }
  return { path: root, digest }
}

/** Adds a number to the time if a version of that time exists, e.g. after the clock was set back. */
async function findUnusedName(
  root: string,
  { disk, clock }: Pick<ProjectedVolumeDeps, 'disk' | 'clock'>,
): Promise<string> {
  const time = new Date(clock.nowMs()).toISOString().replace(/[-T:]/g, '_').replace('Z', '')
  for (let number = 0; ; number++) {
    const name = `..${time}${number === 0 ? '' : `-${number}`}`
    if ((await disk.kindOf(join(root, name))) === undefined) return name
  }
}

/** Returns a digest of the paths, modes, owners and contents. The agent remembers it instead of the files, which may be large. */
export function digestOf(files: ReadonlyMap<string, ProjectedFile>): string {
  const hash = createHash('sha256')
  for (const path of [...files.keys()].sort()) {
    const { content, mode, user } = files.get(path)!
    hash.update(JSON.stringify([path, mode, user ?? null, content.length])).update(content)
  }
  return hash.digest('base64')
}

/** Removes all projected volumes of the pod. */
export async function removeProjectedVolumes(
  uid: string,
  { disk, paths }: Pick<ProjectedVolumeDeps, 'disk' | 'paths'>,
): Promise<void> {
  for (const name of await disk.list(paths.projectedVolumes(uid))) {
    const path = paths.projected(uid, name)
    if (await disk.isMountPoint(path)) await disk.unmount(path)
    await disk.removeTree(path)
  }
}
