// What the agent does to its node's files and mounts, as a contract: host-disk.ts is the machine, memory-disk.ts a model
// of it for tests. Everything may be repeated. Nothing here removes what a volume holds: directories go only when they
// are empty, and `removeScratch` refuses to cross a mount.

export type PathKind = 'directory' | 'file' | 'link' | 'socket' | 'block device' | 'character device' | 'other'

export interface NodeDisk {
  /** With its parents, each with the mode if it is new. */
  makeDirectory(path: string, mode: number): Promise<void>
  /** A link is not followed. Nothing: there is no such path. */
  kindOf(path: string): Promise<PathKind | undefined>
  /** Follows links. */
  kindBehind(path: string): Promise<PathKind | undefined>
  /** Names in a directory, sorted; none if it is not there. */
  list(path: string): Promise<string[]>
  readText(path: string): Promise<string | undefined>
  /** Whole or not at all, however the agent ends. Through a loss of power it may be missing or empty. */
  writeText(path: string, text: string): Promise<void>
  makeEmptyFile(path: string, mode: number): Promise<void>
  /** A file or link; nothing if it is gone. */
  removeFile(path: string): Promise<void>
  /** True if it is gone afterwards; false if something lies in it or is mounted there. */
  removeEmptyDirectory(path: string): Promise<boolean>
  /** A tree that belongs to the agent or lives as long as its pod. Refused while anything is mounted in it. */
  removeScratch(path: string): Promise<void>
  setMode(path: string, mode: number): Promise<void>
  /** A link that replaces one with another target. */
  link(target: string, path: string): Promise<void>

  isMountPoint(path: string): Promise<boolean>
  mountsUnder(path: string): Promise<string[]>
  bind(from: string, to: string, options?: { readonly readOnly?: boolean }): Promise<void>
  mountMemory(path: string, sizeBytes?: number): Promise<void>
  unmount(path: string): Promise<void>

  /** Gives a volume to a group. */
  giveToGroup(root: string, options: GroupOptions): Promise<void>
  /** The path under `root`, its missing directories made. Throws SubPathError where a link, or `..`, leads elsewhere. */
  makeSubPath(root: string, subPath: string): Promise<string>
  /** Binds what `makeSubPath` finds, itself and not its name: nobody can swap it for a link in between. */
  bindSubPath(root: string, subPath: string, to: string): Promise<void>
}

export interface GroupOptions {
  readonly group: number
  readonly readOnly: boolean
  /** Nothing is done if the root has the group and its rights already. */
  readonly onlyOnRootMismatch: boolean
}

/** The subPath of a mount cannot be used; the message names the part that is wrong. */
export class SubPathError extends Error {
  override readonly name = 'SubPathError'
}
