// subPaths of volume mounts: each must lie inside its volume and is created if missing.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { VolumePaths } from '../commands/containers.ts'
import type { NodeDisk } from '../disk/disk.ts'

/** The first problem as a message; undefined if all subPaths exist. */
export async function subPathProblem(
  pod: Readonly<Pod>,
  volumes: VolumePaths,
  disk: NodeDisk,
): Promise<string | undefined> {
  for (const { name: container, volumeMounts = [] } of containersOf(pod)) {
    for (const { name, subPath, subPathExpr } of volumeMounts) {
      const volume = volumes.get(name)
      if (!volume || (!subPath && !subPathExpr)) continue
      const where = `failed to prepare subPath for volumeMount "${name}" of container "${container}"`
      if (subPathExpr) return `${where}: subPathExpr is not supported by this node agent. Use subPath`
      try {
        await disk.makeSubPath(volume.path, subPath!)
      } catch (error) {
        return `${where}: ${(error as Error).message}`
      }
    }
  }
  return undefined
}

export const containersOf = ({ spec }: Readonly<Pod>) => [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
