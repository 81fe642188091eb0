// Interfaces to the operating system. open-host.ts creates their implementations. An operation can be repeated after a crash,
// unless documented otherwise.

export interface Host {
  readonly files: Files
  readonly loops: Loops
  readonly filesystems: Filesystems
  readonly mounts: Mounts
  readonly limits: IoLimits
  readonly counters: Counters
  readonly usage: Usage
}

/** Whether something is possible on this node. If not, `message` states the reason. */
export type Ability = { readonly available: true } | { readonly available: false; readonly message: string }

export const FILESYSTEM_TYPES = ['xfs', 'ext4'] as const
export type FilesystemType = (typeof FILESYSTEM_TYPES)[number]

/** The image files of volumes. Paths are absolute. */
export interface Files {
  /**
   * Creates or extends the file to `bytes` and allocates all its blocks. If it fails, for example with NoSpaceError or
   * FileTooLargeError, the length and the data of the file are unchanged.
   */
  reserve(path: string, bytes: number): Promise<void>
  /**
   * Creates or extends the file to `bytes` as a sparse file. If it fails, for example with FileTooLargeError, the length and the
   * data of the file are unchanged.
   */
  extend(path: string, bytes: number): Promise<void>
  /**
   * Copies a file as a reflink if the file system supports it, otherwise as a full copy that preserves holes. Writes to
   * `<target>.part` and renames it, so that `target` is always complete. Fails if `target` exists. Throws NoSpaceError before
   * it starts if a full copy would leave less than `keepFreeBytes` on the disk.
   */
  copy(
    source: string,
    target: string,
    options?: { readonly keepFreeBytes?: number },
  ): Promise<{ readonly method: 'reflink' | 'full' }>
  /** Returns length and allocated space, or undefined if the file does not exist. */
  sizes(path: string): Promise<FileSizes | undefined>
  /** Removes the file if it exists and syncs its directory. */
  remove(path: string): Promise<void>
  syncFile(path: string): Promise<void>
  syncDirectory(path: string): Promise<void>
}

export interface FileSizes {
  readonly bytes: number
  readonly allocatedBytes: number
}

export interface LoopDevice {
  /** The device node: `/dev/loopN`. */
  readonly device: string
  /** Path of the backing file as the kernel reports it, without the suffix ` (deleted)`. */
  readonly file: string
  readonly isDeleted: boolean
  /** Identity of the backing file, independent of its name: `major:minor` of its file system, and its inode. */
  readonly fileId: string
  readonly isReadOnly: boolean
  /** Whether the kernel detaches the device at its last unmount or close. */
  readonly isAutoclear: boolean
  readonly offsetBytes: number
  readonly sizeLimitBytes: number
}

export type Detachment = { readonly is: 'detached' } | { readonly is: 'pending'; readonly message: string }

export interface Loops {
  /**
   * Returns the device of this file and attaches one if necessary, but not a second writable one. With `readOnly`, it
   * returns a read-only device, which can exist in addition to a writable one.
   */
  attach(file: string, options?: { readonly readOnly?: boolean }): Promise<string>
  list(): Promise<LoopDevice[]>
  /** Returns all devices of this file, which it finds by inode. */
  findByFile(file: string): Promise<LoopDevice[]>
  /** Returns whether this file, or if it does not exist a deleted file of the same name, backs the device. */
  isBackedBy(device: string, file: string): Promise<boolean>
  /** Sets the device's size to its file's size. */
  refreshSize(device: string): Promise<void>
  sizeBytes(device: string): Promise<number>
  /**
   * Clears the limits of the device and detaches it. With `file`, has no effect on the device of another file: loop numbers
   * are reused, and a late retry must not detach the device of another volume. Returns `pending` if the device is detached
   * when its last user closes it.
   */
  detach(device: string, options?: { readonly file?: string }): Promise<Detachment>
}

export type DeviceContent =
  | { readonly is: 'blank' }
  | { readonly is: 'filesystem'; readonly type: string; readonly uuid?: string; readonly label?: string }
  /** Other content, for example conflicting signatures, a partition table or unknown data. */
  | { readonly is: 'unclear'; readonly message: string }

export type Growth =
  | { readonly is: 'grown' }
  /** Possible only while unmounted: grow it at the next NodeStageVolume. */
  | { readonly is: 'needs unmount'; readonly message: string }
  /** Possible only while mounted: mount it first. */
  | { readonly is: 'needs mount'; readonly message: string }

export interface FormatOptions {
  /** Whether to keep the blocks that are reserved for the file, instead of discarding them. */
  readonly keepReservation: boolean
  readonly label?: string
  /**
   * Whether an earlier format may have been interrupted, according to the record of a volume that has never been used. Its
   * remains (the same file system type, or unrecognizable data) are erased. Any other content is an error.
   */
  readonly wasInterrupted?: boolean
}

export interface Filesystems {
  probe(device: string): Promise<DeviceContent>
  /**
   * Creates a file system on a blank device. Throws NotBlankError if the device is not blank, except for the remains of an
   * earlier format if `wasInterrupted` is true.
   */
  format(device: string, type: FilesystemType, options: FormatOptions): Promise<void>
  /** Grows the file system to its device's size. `mountpoint` is the staging path, or undefined if not mounted. */
  grow(device: string, mountpoint: string | undefined, type: FilesystemType): Promise<Growth>
  /** Returns the size in the superblock, which is accurate only while the file system is not mounted. */
  sizeBytes(device: string, type: FilesystemType): Promise<number>
  /**
   * Freezes the file system, runs `work`, and thaws it even if `work` fails. Calls are serialized per path. Fails if the path
   * is not a mount point. Throws FrozenError if another program has frozen the file system, which then stays frozen.
   */
  whileFrozen<T>(mountpoint: string, work: () => Promise<T>): Promise<T>
  /** Thaws a file system that a killed driver left frozen. Has no effect if it is not frozen. */
  thaw(mountpoint: string): Promise<void>
  /**
   * Assigns a new UUID to a copied xfs, because two xfs with the same UUID cannot be mounted at the same time. Mounts it once at
   * `scratch`, a directory that is created and removed, to replay its log. Has no effect for ext4.
   */
  assignNewUuid(device: string, type: FilesystemType, scratch: string): Promise<void>
}

export interface MountEntry {
  readonly id: number
  readonly parentId: number
  /** The number of the mounted device: `major:minor`. */
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
  /** Returns the topmost mount at exactly this path. */
  mountAt(target: string): Promise<MountEntry | undefined>
  isMountPoint(target: string): Promise<boolean>
  /** Returns the block device that is mounted, or whose node is bound, at this path: `/dev/loop3`. */
  sourceOf(target: string): Promise<string | undefined>
  /** Returns all mounts of the device, including bind mounts of its node. */
  mountsOf(device: string): Promise<MountEntry[]>
  mount(
    device: string,
    directory: string,
    type: FilesystemType,
    flags?: readonly string[],
    options?: { readonly readOnly?: boolean },
  ): Promise<void>
  /** Bind-mounts a directory on a directory, or a device node on a file. The target must exist. */
  bind(source: string, target: string, options?: { readonly readOnly?: boolean }): Promise<void>
  /** Unmounts all mounts at the path, or the topmost one. Has no effect if nothing is mounted. */
  unmount(target: string, options?: { readonly topmostOnly?: boolean }): Promise<void>
}

/** Limits per second. Omitted keys are not limited. */
export interface IoLimit {
  readonly readIops?: number
  readonly writeIops?: number
  readonly readBps?: number
  readonly writeBps?: number
}

export type Enforcement =
  | {
      readonly is: 'enforced'
      /** The cgroups with the limit, as paths in the hierarchy. `/` is its root. */
      readonly cgroups: readonly string[]
      /** Descriptions of IO that the limit does not cover. */
      readonly caveats: readonly string[]
    }
  | { readonly is: 'not enforced'; readonly message: string }

export interface AppliedLimit {
  readonly cgroup: string
  readonly limit: IoLimit
}

export interface IoLimits {
  readonly version: 'v1' | 'v2' | 'none'
  /**
   * Replaces the limits of the device for the workloads in `cgroups` (paths as in /proc/PID/cgroup). Removes the limits of
   * omitted keys, and of cgroups that were in the previous call only. 'none' omits all keys.
   */
  apply(device: string, limit: IoLimit | 'none', cgroups: readonly string[]): Promise<Enforcement>
  /** Removes all limits of the device in all cgroups. */
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
  /** Starts counting at zero, although the kernel continues the counters of the previous volume with this loop number. */
  begin(device: string): Promise<void>
  /** Returns totals since begin() or the first read(), or undefined if the device does not exist. */
  read(device: string): Promise<{ readonly totals: IoTotals; readonly rates: IoRates } | undefined>
  end(device: string): void
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
  /** False if the tree has too many files or an unreadable directory. The actual values may then be larger. */
  readonly isComplete: boolean
}

export interface Usage {
  /** Returns the usage of the file system that contains the path. */
  measureFilesystem(path: string): Promise<SpaceUsage>
  /** Returns the usage of the tree below a directory. Results are cached for a short time. */
  measureDirectory(path: string): Promise<TreeUsage>
}
