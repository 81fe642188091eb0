// The Backend interface: stores the content of volumes and makes them available on the node. loop-backend.ts gives every volume a
// device. directory-backend.ts works without root. A backend stores no records.
import type { Ability, Enforcement, FilesystemType, Growth, IoRates, IoTotals } from '../../host/host.ts'
import type { SnapshotId, VolumeId } from '../ids.ts'
import type {
  AccessType,
  ContentSource,
  MountRecord,
  Publication,
  SnapshotRecord,
  Staging,
  VolumeRecord,
} from '../pool/records.ts'

export type BackendName = 'loop' | 'directory'

export interface Backend {
  readonly name: BackendName
  /** Sentences for the operator about features that are not supported on this machine. */
  readonly limitations: readonly string[]
  /** Set if the backend can never enforce limits: requests for them are rejected with this reason. */
  readonly limitsUnsupportedReason?: string
  /** The file system of volumes if their class does not specify one. */
  readonly defaultFsType: FilesystemType
  /** Whether creating a reserved volume allocates its space in the pool. */
  readonly allocatesOnCreate: boolean
  /** Whether a volume with a file system also requires NodeExpandVolume. */
  readonly growsOnNode: boolean
  /** Returns whether volumes can be used in this way on this machine. */
  checkSupport(use: {
    readonly accessType: AccessType
    readonly fsType: FilesystemType
    readonly isReadOnly: boolean
  }): Ability
  minimumBytes(use: { readonly accessTypes: readonly AccessType[]; readonly fsType: FilesystemType }): number

  readonly contents: Contents
  readonly node: NodeOperations
}

/** The content of volumes and snapshots in the pool. */
export interface Contents {
  create(volume: VolumeRecord): Promise<void>
  /** Creates the volume as a copy of its source, which may be staged, and extends it to its size. */
  copy(source: ContentSource, volume: VolumeRecord, staging: Staging | undefined): Promise<void>
  /** Creates a copy of the volume, even while it is in use. */
  snapshot(
    volume: VolumeRecord,
    staging: Staging | undefined,
    snapshot: SnapshotRecord,
  ): Promise<{ readonly allocatedBytes: number }>
  /** Never shrinks. Throws NoSpaceError and changes nothing if the pool does not have enough space. */
  grow(volume: VolumeRecord, toBytes: number): Promise<void>
  removeVolume(id: VolumeId): Promise<void>
  removeSnapshot(id: SnapshotId): Promise<void>
  allocatedBytes(id: VolumeId | SnapshotId): Promise<number>
  /** Returns the path of the content if it exists, with or without a record. */
  find(id: VolumeId | SnapshotId): Promise<string | undefined>
  /** Returns a message if the content is missing or truncated, so that the volume must not be used, grown or copied. */
  findDamage(volume: VolumeRecord): Promise<string | undefined>
  findSnapshotDamage(snapshot: SnapshotRecord): Promise<string | undefined>
  /** Returns a message for the volume condition about damage or a less severe problem. */
  findProblem(volume: VolumeRecord): Promise<string | undefined>
}

/** Operations on a volume on this node. */
export interface NodeOperations {
  /**
   * Attaches and mounts the volume. Clears the limits that a previous volume left on the device; limit() sets the new ones.
   * Calls `save` to persist a changed record before the step that relies on it.
   */
  stage(
    volume: VolumeRecord,
    staging: Staging,
    options: { readonly mountFlags: readonly string[]; save(volume: VolumeRecord): Promise<void> },
  ): Promise<void>
  unstage(volume: VolumeRecord, path: string): Promise<void>
  isStaged(volume: VolumeRecord, staging: Staging): Promise<boolean>
  publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void>
  /** Removes mounts of this volume at the path. `publication` is the one in the mount record, if any. */
  unpublish(volume: VolumeRecord, path: string, publication: Publication | undefined): Promise<void>
  isPublished(volume: VolumeRecord, publication: Publication): Promise<boolean>
  /** Returns the paths at which the volume is mounted. The loop backend also finds those without a record. */
  findMountPaths(volume: VolumeRecord, mountRecord: MountRecord | undefined): Promise<readonly string[]>
  grow(volume: VolumeRecord, staging: Staging): Promise<Growth>
  usage(volume: VolumeRecord, target: { readonly path: string; readonly accessType: AccessType }): Promise<VolumeSpace>
  /** Applies the limits of a staged volume to these cgroups. */
  limit(volume: VolumeRecord, cgroups: readonly string[]): Promise<Enforcement>
  /** Returns the IO since the volume was staged or the driver started, or undefined if it cannot be measured. */
  io(id: VolumeId): Promise<{ readonly totals: IoTotals; readonly rates: IoRates } | undefined>
  /**
   * Called at startup. Compares the mount records with the actual mounts and devices, detaches unused devices, and returns
   * the corrected records. Devices of the pool that do not belong to one of the `volumes` are unused. `copiedVolumes` were
   * being copied when the driver stopped, and may still be frozen.
   */
  recover(
    volumes: readonly VolumeRecord[],
    mountRecords: readonly MountRecord[],
    copiedVolumes: ReadonlySet<VolumeId>,
  ): Promise<RecoveryResult>
}

interface VolumeSpace {
  readonly bytes: { readonly total: number; readonly used?: number; readonly available?: number }
  readonly inodes?: { readonly total: number; readonly used: number; readonly available: number }
}

export interface RecoveryResult {
  readonly mountRecords: readonly MountRecord[]
  /** Log messages about corrections. */
  readonly notes: readonly string[]
  /** Log messages about findings that were not changed and require an operator. */
  readonly warnings: readonly string[]
}
