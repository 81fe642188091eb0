// NodeDisk: the agent's operations on files and mounts. host-disk.ts is the machine, memory-disk.ts a model for tests.
// All operations are idempotent. None removes a volume's contents: only empty directories are removed, and `removeScratch`
// does not cross mounts.

export type PathKind = 'directory' | 'file' | 'link' | 'socket' | 'block device' | 'character device' | 'other'

export interface NodeDisk {
  /** Creates missing parents too, with the same mode. */
  makeDirectory(path: string, mode: number): Promise<void>
  /** Does not follow links. Undefined: no such path. */
  kindOf(path: string): Promise<PathKind | undefined>
  /** Follows links. */
  kindBehind(path: string): Promise<PathKind | undefined>
  /** Names in a directory, sorted; empty if it does not exist. */
  list(path: string): Promise<string[]>
  readText(path: string): Promise<string | undefined>
  /** Atomic if the agent crashes. After a power loss the file may be missing or empty. */
  writeText(path: string, text: string): Promise<void>
  makeEmptyFile(path: string, mode: number): Promise<void>
  /** Removes a file or link, if it exists. */
  removeFile(path: string): Promise<void>
  /** True if the directory no longer exists; false if it is not empty or a mount point. */
  removeEmptyDirectory(path: string): Promise<boolean>
  /** Removes a tree of the agent or of an emptyDir. Throws while anything is mounted in it. */
  removeScratch(path: string): Promise<void>
  setMode(path: string, mode: number): Promise<void>
  /** Creates a link, replacing one with another target. */
  link(target: string, path: string): Promise<void>

  isMountPoint(path: string): Promise<boolean>
  mountsUnder(path: string): Promise<string[]>
  bind(from: string, to: string, options?: { readonly readOnly?: boolean }): Promise<void>
  mountMemory(path: string, sizeBytes?: number): Promise<void>
  unmount(path: string): Promise<void>

  /** Applies fsGroup to a volume. */
  giveToGroup(root: string, options: GroupOptions): Promise<void>
  /** Returns the path under `root`, creating missing directories. Throws SubPathError for a link or `..`. */
  makeSubPath(root: string, subPath: string): Promise<string>
  /** Bind-mounts the open descriptor of the subPath, not its name, which could be replaced by a link in between. */
  bindSubPath(root: string, subPath: string, to: string): Promise<void>
}

export interface GroupOptions {
  readonly group: number
  readonly readOnly: boolean
  /** Skip if the root already has group and mode. */
  readonly onlyOnRootMismatch: boolean
}

/** An invalid subPath; the message names the wrong part. */
export class SubPathError extends Error {
  override readonly name = 'SubPathError'
}
