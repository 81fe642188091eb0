// Writes the files of projected volumes, each atomically, and removes a file that is no longer in the sources. If the agent
// has root privileges, a volume with Secrets is kept in memory.
import { dirname, join } from 'node:path'
import type { NodeDisk } from '../disk/disk.ts'
import { splitSubPath } from '../disk/sub-path.ts'
import type { AgentPaths } from '../paths.ts'
import type { ProjectedFile } from './projected-files.ts'

export interface ProjectedVolumeDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
}

const DIRECTORY_MODE = 0o755

/** Returns the path of the volume. `previous` are the files that an earlier call has written. */
export async function writeProjectedVolume(
  uid: string,
  name: string,
  files: ReadonlyMap<string, ProjectedFile>,
  { previous, hasSecrets }: { previous: ReadonlyMap<string, ProjectedFile>; hasSecrets: boolean },
  { disk, paths }: ProjectedVolumeDeps,
): Promise<string> {
  const root = paths.projected(uid, name)
  await disk.makeDirectory(root, DIRECTORY_MODE)
  if (hasSecrets && previous.size === 0) await disk.mountTmpfs(root).catch(() => {}) // without root privileges: files on disk
  for (const [path, file] of files) {
    const writtenFile = previous.get(path)
    if (writtenFile && writtenFile.mode === file.mode && Buffer.compare(writtenFile.content, file.content) === 0)
      continue
    const target = join(root, ...splitSubPath(path)) // throws if the path would lead out of the volume
    await disk.makeDirectory(dirname(target), DIRECTORY_MODE)
    await disk.writeFile(target, file.content, file.mode)
  }
  for (const path of previous.keys()) if (!files.has(path)) await disk.removeFile(join(root, ...splitSubPath(path)))
  return root
}

/** Removes all projected volumes of the pod. */
export async function removeProjectedVolumes(uid: string, { disk, paths }: ProjectedVolumeDeps): Promise<void> {
  for (const name of await disk.list(paths.projectedVolumes(uid))) {
    const path = paths.projected(uid, name)
    if (await disk.isMountPoint(path)) await disk.unmount(path)
    await disk.removeTree(path)
  }
}
