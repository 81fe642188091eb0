// Where a pod's volumes are on the node, and how NodeDisk opens a subPath of one.

/** The pod's volumes on the node, by volume name. */
export type VolumePaths = ReadonlyMap<string, VolumePath>

export interface VolumePath {
  readonly path: string
  /** Whether the pod mounts a path of the node's own file system. The path contained no links when it was checked. */
  readonly isHostPath?: boolean
  readonly isDevice: boolean
  readonly readOnly: boolean
}

/**
 * Returns the arguments with which NodeDisk opens a subPath of the volume. NodeDisk rejects links that lead out of `root` and,
 * if `root` is `/`, all links. The root of a hostPath volume is `/`, because another pod may have replaced a directory of the
 * volume's path with a link since the path was checked. An absolute subPath is returned unchanged: NodeDisk rejects it.
 */
export const subPathArguments = (
  { path, isHostPath }: VolumePath,
  subPath: string,
): readonly [root: string, subPath: string] =>
  isHostPath && !subPath.startsWith('/') ? ['/', `${path.slice(1)}/${subPath}`] : [path, subPath]
