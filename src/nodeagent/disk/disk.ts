// NodeDisk: the operations of the agent on files and mounts. host-disk.ts implements it on the machine, memory-disk.ts in
// memory. All operations are idempotent.

export type PathKind = 'directory' | 'file' | 'link' | 'socket' | 'block device' | 'character device' | 'other'

export interface NodeDisk {
  /** Creates the directory and missing parents with this mode. */
  makeDirectory(path: string, mode: number): Promise<void>
  /** Returns undefined if the path does not exist. Does not follow links. */
  kindOf(path: string): Promise<PathKind | undefined>
  /** Like `kindOf`, but follows links. */
  kindOfTarget(path: string): Promise<PathKind | undefined>
  /** Returns the absolute path with all links resolved. Parts that do not exist are kept. */
  resolvePath(path: string): Promise<string>
  /** Returns the sorted names in a directory, or an empty array if it does not exist. */
  list(path: string): Promise<string[]>
  readText(path: string): Promise<string | undefined>
  /** Replaces the file atomically. After a power loss, however, the file may be missing or empty. */
  writeText(path: string, text: string): Promise<void>
  /** Replaces the file atomically, with this mode and owner. Default owner: the agent's user. */
  writeFile(path: string, content: Uint8Array, mode: number, user?: number): Promise<void>
  /** Creates a file if it does not exist. Throws SubPathError if the path of its directory contains a link. */
  makeEmptyFile(path: string, mode: number): Promise<void>
  /** Removes a file or link, if it exists. */
  removeFile(path: string): Promise<void>
  /** Returns true if the directory no longer exists, false if it is not empty or is a mount point. */
  removeEmptyDirectory(path: string): Promise<boolean>
  /** Removes a directory of the agent or an emptyDir with its contents. Throws if it contains a mount point. */
  removeTree(path: string): Promise<void>
  setMode(path: string, mode: number): Promise<void>
  /** Creates a link, or replaces a link that has another target. */
  link(target: string, path: string): Promise<void>

  isMountPoint(path: string): Promise<boolean>
  mountsUnder(path: string): Promise<string[]>
  bind(source: string, target: string, options?: { readonly readOnly?: boolean }): Promise<void>
  mountTmpfs(path: string, sizeBytes?: number): Promise<void>
  unmount(path: string): Promise<void>
  /** Returns the bytes that the files of a directory occupy on the disk. */
  measureUsage(path: string): Promise<number>

  /** Applies fsGroup to a volume. */
  applyFsGroup(root: string, options: GroupOptions): Promise<void>
  /**
   * Creates missing directories and returns the path under `root`, with links resolved. Throws SubPathError for an absolute
   * `subPath`, for `..`, for a link that leads out of `root` and, if `root` is `/`, for any link.
   */
  makeSubPath(root: string, subPath: string): Promise<string>
  /** Bind-mounts the subPath by its open file descriptor, because its name could be replaced with a link in between. */
  bindSubPath(root: string, subPath: string, target: string): Promise<void>
}

export interface GroupOptions {
  readonly group: number
  readonly readOnly: boolean
  /** Whether to skip the volume if its root already has the group and mode. */
  readonly onlyOnRootMismatch: boolean
}

/** Thrown for an invalid subPath. The message names the invalid part. */
export class SubPathError extends Error {
  override readonly name = 'SubPathError'
}
