// Prepares the subPaths of a pod's volume mounts: creates missing directories, and rejects a subPath outside its volume.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { subPathArguments, type VolumePaths } from '../commands/volume-path.ts'
import type { NodeDisk } from '../disk/disk.ts'

/** Returns the message of the first error, or undefined if all subPaths exist. */
export async function prepareSubPaths(
  pod: Readonly<Pod>,
  volumes: VolumePaths,
  disk: NodeDisk,
): Promise<string | undefined> {
  for (const { name: container, volumeMounts = [] } of allContainersOf(pod)) {
    for (const { name, subPath, subPathExpr } of volumeMounts) {
      const volume = volumes.get(name)
      if (!volume || (!subPath && !subPathExpr)) continue
      const prefix = `failed to prepare subPath for volumeMount "${name}" of container "${container}"`
      if (subPathExpr) return `${prefix}: subPathExpr is not supported by this node agent; use subPath`
      try {
        await disk.makeSubPath(...subPathArguments(volume, subPath!))
      } catch (error) {
        return `${prefix}: ${(error as Error).message}`
      }
    }
  }
  return undefined
}

const allContainersOf = ({ spec }: Readonly<Pod>) => [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
