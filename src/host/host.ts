// Interfaces to the operating system: files, loop devices, file systems, mounts, IO limits (cgroups), IO counters, usage.
// The node agent and the local CSI driver use them. Each has one implementation in this folder; open-host.ts creates
// them all. Operations are idempotent: repeating a completed step changes nothing.

export interface Host {
  readonly files: Files
  readonly loops: Loops
  readonly filesystems: Filesystems
  readonly mounts: Mounts
  readonly limits: IoLimits
  readonly counters: Counters
  readonly usage: Usage
}

/** Whether something is possible on this machine; if not, the reason, for the operator. */
export type Ability = { readonly yes: true } | { readonly yes: false; readonly because: string }

export const FILESYSTEM_TYPES = ['xfs', 'ext4'] as const
export type FilesystemType = (typeof FILESYSTEM_TYPES)[number]

/** The image files of volumes. Paths are absolute. */
export interface Files {
  /**
   * Creates the file, or extends it, to `bytes` and allocates all its blocks. Without enough space it throws NoSpaceError
   * and leaves the file as it was; a new file is removed.
   */
  reserve(path: string, bytes: number): Promise<void>
  /** Creates the file, or extends it, to `bytes` as a sparse file. */
  extend(path: string, bytes: number): Promise<void>
  /**
   * Copies a file: a reflink if the file system supports it, otherwise a full copy that keeps holes. Writes to `<to>.part`
   * and renames it, so that `to` is complete once it exists. Fails if `to` exists. A full copy that would leave less than
   * `keepFreeBytes` on the disk throws NoSpaceError before it starts.
   */
  copy(
    from: string,
    to: string,
    options?: { readonly keepFreeBytes?: number },
  ): Promise<{ readonly how: 'reflink' | 'full' }>
  /** Length and allocated space; undefined if the file does not exist. */
  sizes(path: string): Promise<FileSizes | undefined>
  /** Removes the file if it exists, and syncs its directory. */
  remove(path: string): Promise<void>
  syncFile(path: string): Promise<void>
  syncDirectory(path: string): Promise<void>
}

export interface FileSizes {
  readonly bytes: number
  readonly allocatedBytes: number
}

export interface LoopDevice {
  /** `/dev/loopN` */
  readonly device: string
  /** Path of the backing file as the kernel reports it, without the suffix ` (deleted)`. */
  readonly file: string
  readonly isDeleted: boolean
  /** Identity of the backing file, independent of its name: `major:minor` of its file system, and its inode. */
  readonly fileId: string
  readonly isReadOnly: boolean
  /** The kernel detaches the device at its last unmount or close. */
  readonly isAutoclear: boolean
  readonly offsetBytes: number
  readonly sizeLimitBytes: number
}

export type Detachment = { readonly is: 'detached' } | { readonly is: 'pending'; readonly because: string }

export interface Loops {
  /**
   * Returns the device of this file, attaching a new one if necessary. A file never has two writable devices. With
   * `readOnly` the file gets a separate read-only device, in addition to a writable one.
   */
  attach(file: string, options?: { readonly readOnly?: boolean }): Promise<string>
  list(): Promise<LoopDevice[]>
  /** All devices of this file, found by inode. */
  findByFile(file: string): Promise<LoopDevice[]>
  /** Whether this file, or a deleted file of the same name, backs the device now. Loop numbers are reused. */
  isBackedBy(device: string, file: string): Promise<boolean>
  /** Updates the size of the device to that of its file. */
  refreshSize(device: string): Promise<void>
  sizeBytes(device: string): Promise<number>
  /**
   * Clears the limits of the device and detaches it. Pass `file`, because loop numbers are reused and a late retry must
   * not detach the device of another volume. `pending`: the device is in use and is detached by its last user.
   */
  detach(device: string, options?: { readonly file?: string }): Promise<Detachment>
}

export type DeviceContent =
  | { readonly is: 'blank' }
  | { readonly is: 'filesystem'; readonly type: string; readonly uuid?: string; readonly label?: string }
  /** Conflicting signatures, a partition table, or unknown data. Never overwritten. */
  | { readonly is: 'unclear'; readonly because: string }

export type Growth =
  | { readonly is: 'grown' }
  /** Possible only while unmounted: grow it at the next NodeStageVolume. */
  | { readonly is: 'needs unmount'; readonly because: string }
  /** Possible only while mounted: mount it first. */
  | { readonly is: 'needs mount'; readonly because: string }

export interface FormatOptions {
  /** Keep the blocks that are reserved for the file: do not discard. */
  readonly keepReservation: boolean
  readonly label?: string
  /**
   * The caller's record says that an earlier format may have been interrupted and that the volume has not been used since.
   * Its remains (the same file system type, or unrecognisable data) are wiped first; anything else still fails.
   */
  readonly wasInterrupted?: boolean
}

export interface Filesystems {
  probe(device: string): Promise<DeviceContent>
  /** Creates a file system on a blank device; otherwise throws NotBlankError and writes nothing. */
  format(device: string, type: FilesystemType, options: FormatOptions): Promise<void>
  /** Grows to the size of the device. `mountpoint`: the staging path, not a read-only bind; undefined if not mounted. */
  grow(device: string, mountpoint: string | undefined, type: FilesystemType): Promise<Growth>
  /** The size in the superblock, which is accurate only while the file system is not mounted. */
  sizeBytes(device: string, type: FilesystemType): Promise<number>
  /**
   * Freezes the file system, runs `work`, and thaws it even if `work` fails. Serialized per path. Fails for a path that is
   * not a mount point, and with FrozenError if another program has frozen it, which then stays frozen.
   */
  whileFrozen<T>(mountpoint: string, work: () => Promise<T>): Promise<T>
  /** Thaws a file system that a killed driver left frozen. No-op if it is not frozen. */
  thaw(mountpoint: string): Promise<void>
  /**
   * Gives a copied xfs a new UUID, because two file systems with one UUID cannot be mounted at the same time. Mounts it
   * once at `scratch`, a directory that is created and removed, to replay its log. No-op for ext4.
   */
  newUuid(device: string, type: FilesystemType, scratch: string): Promise<void>
}

export interface MountEntry {
  readonly id: number
  readonly parentId: number
  /** `major:minor` */
  readonly deviceNumber: string
  /** The mounted path within the file system: `/`, a directory, or `/loop3` for a bound device node. */
  readonly root: string
  readonly target: string
  readonly options: readonly string[]
  readonly type: string
  readonly source: string
  readonly superOptions: readonly string[]
}

export interface Mounts {
  list(): Promise<MountEntry[]>
  /** The topmost mount at exactly this path. */
  at(target: string): Promise<MountEntry | undefined>
  isMountPoint(target: string): Promise<boolean>
  /** The block device that is mounted, or whose node is bound, at this path: `/dev/loop3`. */
  sourceOf(target: string): Promise<string | undefined>
  /** All mounts of the device, including bind mounts of its node. */
  mountsOf(device: string): Promise<MountEntry[]>
  mount(
    device: string,
    directory: string,
    type: FilesystemType,
    flags?: readonly string[],
    options?: { readonly readOnly?: boolean },
  ): Promise<void>
  /** Bind mount of a directory, or of a device node onto a file. The target must exist and be of the same kind. */
  bind(from: string, to: string, options?: { readonly readOnly?: boolean }): Promise<void>
  /** Unmounts everything stacked at the path. No-op if nothing is mounted or the path does not exist. */
  unmount(target: string, options?: { readonly topmostOnly?: boolean }): Promise<void>
}

/** Limits per second. An omitted key is not limited. */
export interface IoLimit {
  readonly readIops?: number
  readonly writeIops?: number
  readonly readBps?: number
  readonly writeBps?: number
}

export type Enforcement =
  | {
      readonly is: 'enforced'
      /** The cgroups that hold the limit, as paths in the hierarchy; `/` is its root. */
      readonly cgroups: readonly string[]
      /** What the limit does not cover. */
      readonly escapes: readonly string[]
    }
  | { readonly is: 'not enforced'; readonly because: string }

export interface AppliedLimit {
  readonly cgroup: string
  readonly limit: IoLimit
}

export interface IoLimits {
  readonly version: 'v1' | 'v2' | 'none'
  /**
   * Replaces the limits of the device for the workloads in `cgroups` (paths as in /proc/PID/cgroup). Removes the limits of
   * omitted keys, and of cgroups from the previous call that are not listed again. 'none' removes all.
   */
  apply(device: string, limit: IoLimit | 'none', cgroups: readonly string[]): Promise<Enforcement>
  /** Removes all limits of the device in all cgroups. Call it before an unmount, so that dirty data is written quickly. */
  clear(device: string): Promise<void>
  appliedLimits(device: string): Promise<AppliedLimit[]>
}

export interface IoTotals {
  readonly reads: number
  readonly readBytes: number
  readonly writes: number
  readonly writtenBytes: number
}

export interface IoRates {
  readonly readIops: number
  readonly writeIops: number
  readonly readBps: number
  readonly writeBps: number
}

export interface Counters {
  /** Starts counting at zero. The kernel's counters continue from the previous volume with this loop number. */
  begin(device: string): Promise<void>
  /** Totals since begin(), which the first read() implies; undefined if the device does not exist. */
  read(device: string): Promise<{ readonly totals: IoTotals; readonly rates: IoRates } | undefined>
  forget(device: string): void
}

export interface SpaceUsage {
  readonly totalBytes: number
  readonly usedBytes: number
  readonly availableBytes: number
  readonly totalInodes: number
  readonly usedInodes: number
  readonly availableInodes: number
}

export interface TreeUsage {
  readonly usedBytes: number
  readonly files: number
  /** False if the walk reached its limit or could not read a directory: the real values may be larger. */
  readonly isComplete: boolean
}

export interface Usage {
  /** The file system that contains the path. */
  ofFilesystem(path: string): Promise<SpaceUsage>
  /** The tree below a directory, by walking it. Results are cached for a short time and shared by concurrent callers. */
  ofDirectory(path: string): Promise<TreeUsage>
}
