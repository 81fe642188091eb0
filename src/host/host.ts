// What the driver may do to this machine, as contracts: files, loop devices, file systems, mounts, limits, counters.
// The real ones are beside this file, one each; open-host.ts wires them together. All of it is asynchronous and safe
// to repeat: a step that has already happened is not done twice.

export interface Host {
  readonly files: Files
  readonly loops: Loops
  readonly filesystems: Filesystems
  readonly mounts: Mounts
  readonly limits: IoLimits
  readonly counters: Counters
  readonly usage: Usage
}

/** Yes, or no with the reason as a sentence a person can act on. */
export type Ability = { readonly yes: true } | { readonly yes: false; readonly because: string }

export const FILESYSTEM_TYPES = ['xfs', 'ext4'] as const
export type FilesystemType = (typeof FILESYSTEM_TYPES)[number]

/** The files that volumes are made of. Paths are absolute. */
export interface Files {
  /**
   * Makes the file, or lengthens it, to `bytes` and takes all its space from the pool now. If the pool has less, throws
   * NoSpaceError and leaves things as they were: no file where there was none.
   */
  reserve(path: string, bytes: number): Promise<void>
  /** Makes the file, or lengthens it, to `bytes`; space is taken when it is written to. */
  extend(path: string, bytes: number): Promise<void>
  /**
   * A copy at `to`: sharing blocks where the pool can, else without the holes. Written to `<to>.part` first, so that
   * `to` is whole once it exists. Refused if there is something at `to`: it is not known to be this copy. A copy that
   * shares nothing leaves `keepFreeBytes` of the disk, or is not begun and throws NoSpaceError.
   */
  copy(
    from: string,
    to: string,
    options?: { readonly keepFreeBytes?: number },
  ): Promise<{ readonly how: 'reflink' | 'full' }>
  /** Length and space taken, or nothing if there is no such file. */
  sizes(path: string): Promise<FileSizes | undefined>
  /** Removes the file, if there is one, and flushes its directory. */
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
  /** As the kernel tells it, without its ` (deleted)`; `isDeleted` says so instead. */
  readonly file: string
  readonly isDeleted: boolean
  /** Which file it really is, whatever it is called now: `major:minor` of its file system, and its inode. */
  readonly fileId: string
  readonly isReadOnly: boolean
  /** Goes at the last unmount or close. */
  readonly isAutoclear: boolean
  readonly offsetBytes: number
  readonly sizeLimitBytes: number
}

export type Detachment = { readonly is: 'gone' } | { readonly is: 'going'; readonly because: string }

export interface Loops {
  /**
   * The device over this file: the one it has, or a new one. A file never gets two writable devices. `readOnly` gives a
   * device of its own that cannot be written, beside the writable one if there is one.
   */
  attach(file: string, options?: { readonly readOnly?: boolean }): Promise<string>
  list(): Promise<LoopDevice[]>
  /** All devices over this file, by inode: whatever the name. */
  findByFile(file: string): Promise<LoopDevice[]>
  /** Whether the device is over this very file, or over what had its name if there is none now: numbers are used again. */
  isOver(device: string, file: string): Promise<boolean>
  /** Makes the device as long as its file now is. */
  refreshSize(device: string): Promise<void>
  sizeBytes(device: string): Promise<number>
  /**
   * Takes the device off its file, its limits first. Name the `file`: loop numbers are used again, and a late repeat
   * must not take away another volume's device. `going`: it is in use and leaves with its last user.
   */
  detach(device: string, options?: { readonly file?: string }): Promise<Detachment>
}

export type DeviceContent =
  | { readonly is: 'blank' }
  | { readonly is: 'filesystem'; readonly type: string; readonly uuid?: string; readonly label?: string }
  /** Signatures of more than one thing, a partition table, or bytes that nothing is known about: never overwritten. */
  | { readonly is: 'unclear'; readonly because: string }

export type Growth =
  | { readonly is: 'grown' }
  /** Can be done only while nothing has it mounted: grow it at the next stage. */
  | { readonly is: 'needs unmount'; readonly because: string }
  /** Can be done only while mounted: mount it, then grow. */
  | { readonly is: 'needs mount'; readonly because: string }

export interface MakeOptions {
  /** The file's space was reserved and is to stay so: nothing is discarded. */
  readonly keepReservation: boolean
  readonly label?: string
  /**
   * The caller's record says that a make began here and nobody has been given the volume since. Then what such a make
   * left, of this same type or not recognisable, is wiped first; anything else is still refused.
   */
  readonly wasInterrupted?: boolean
}

export interface Filesystems {
  probe(device: string): Promise<DeviceContent>
  /** Only on a blank device; otherwise throws NotBlankError and writes nothing. */
  make(device: string, type: FilesystemType, options: MakeOptions): Promise<void>
  /** To the size of the device. `mountpoint` is the staging path, never a read-only view of it; undefined: not mounted. */
  grow(device: string, mountpoint: string | undefined, type: FilesystemType): Promise<Growth>
  /** What the file system on the device thinks it spans. Only right while it is not mounted. */
  sizeBytes(device: string, type: FilesystemType): Promise<number>
  /**
   * Freezes, runs, and thaws whatever happened; one at a time for each path. Refuses a path that is not a mount point,
   * and with FrozenError one that someone else has frozen: it stays so.
   */
  whileFrozen<T>(mountpoint: string, work: () => Promise<T>): Promise<T>
  /** For what a killed driver left frozen. Nothing frozen: done. */
  thaw(mountpoint: string): Promise<void>
  /**
   * For a copy of an xfs that has its original's UUID and so cannot be mounted beside it. Mounts once at `scratch` (a
   * directory, made and removed here) to settle its log. Nothing to do for ext4.
   */
  newUuid(device: string, type: FilesystemType, scratch: string): Promise<void>
}

export interface MountEntry {
  readonly id: number
  readonly parentId: number
  /** `major:minor` */
  readonly deviceNumber: string
  /** What of the file system is mounted: `/`, a directory in it, or for a bound device node `/loop3`. */
  readonly root: string
  readonly target: string
  readonly options: readonly string[]
  readonly type: string
  readonly source: string
  readonly superOptions: readonly string[]
}

export interface Mounts {
  list(): Promise<MountEntry[]>
  /** The uppermost mount at exactly this path. */
  at(target: string): Promise<MountEntry | undefined>
  isMountPoint(target: string): Promise<boolean>
  /** The block device behind a mounted directory, or the one bound at this path: `/dev/loop3`. */
  sourceOf(target: string): Promise<string | undefined>
  /** Everything mounted from the device, and its node where that is bound somewhere. */
  mountsOf(device: string): Promise<MountEntry[]>
  mount(
    device: string,
    directory: string,
    type: FilesystemType,
    flags?: readonly string[],
    options?: { readonly readOnly?: boolean },
  ): Promise<void>
  /** A second view of a directory, or of a device node on a file. The target is there already, of the same kind. */
  bind(from: string, to: string, options?: { readonly readOnly?: boolean }): Promise<void>
  /** All that is mounted there, however many lie on each other. Nothing mounted, or no such path: done. */
  unmount(target: string, options?: { readonly uppermostOnly?: boolean }): Promise<void>
}

/** Per second. What is left out is not limited. */
export interface IoLimit {
  readonly readIops?: number
  readonly writeIops?: number
  readonly readBps?: number
  readonly writeBps?: number
}

export type Enforcement =
  | {
      readonly is: 'enforced'
      /** The cgroups that hold a line now, as paths in the hierarchy; `/` is its root. */
      readonly cgroups: readonly string[]
      /** What the limit does not catch, as sentences. */
      readonly escapes: readonly string[]
    }
  | { readonly is: 'not enforced'; readonly because: string }

export interface LimitInForce {
  readonly cgroup: string
  readonly limit: IoLimit
}

export interface IoLimits {
  readonly version: 'v1' | 'v2' | 'none'
  /**
   * Makes these the limits of the device for the workloads in `cgroups` (paths in the hierarchy, as in
   * /proc/PID/cgroup): keys left out, and cgroups named last time but not now, are set free. 'none' frees all.
   */
  apply(device: string, limit: IoLimit | 'none', cgroups: readonly string[]): Promise<Enforcement>
  /** Removes every line about the device, in every cgroup. Before an unmount: dirty data must get out in time. */
  clear(device: string): Promise<void>
  inForce(device: string): Promise<LimitInForce[]>
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
  /** Counting starts here: the kernel's own numbers go on from whoever had this loop number before. */
  begin(device: string): Promise<void>
  /** Since `begin`, which is implied if it was left out. Nothing if there is no such device. */
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
  /** False: the walk stopped at its bound, or was not let in somewhere, and there may be more than this. */
  readonly isComplete: boolean
}

export interface Usage {
  /** Of a mounted file system, or of the pool's. */
  ofFilesystem(path: string): Promise<SpaceUsage>
  /** What lies under a directory, by walking it. An answer is kept for a while and given to all who ask. */
  ofDirectory(path: string): Promise<TreeUsage>
}
