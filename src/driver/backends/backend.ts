// The Backend interface. loop-backend.ts gives every volume its own device and file system; directory-backend.ts works
// without root. A backend keeps no records: it applies the records that it is given, and every step can be repeated.
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
  /** Features that it does not support on this machine, as sentences for the operator. */
  readonly shortcomings: readonly string[]
  /** The file system of volumes whose class specifies none. */
  readonly defaultFsType: FilesystemType
  /** Whether creating a reserved volume allocates its space in the pool. */
  readonly allocatesOnCreate: boolean
  /** Whether a volume with a file system also needs NodeExpandVolume. */
  readonly growsOnNode: boolean
  canServe(wanted: {
    readonly accessType: AccessType
    readonly fsType: FilesystemType
    readonly isReadOnly: boolean
  }): Ability
  minimumBytes(wanted: { readonly accessTypes: readonly AccessType[]; readonly fsType: FilesystemType }): number

  readonly contents: Contents
  readonly node: NodeOperations
}

/** The content of volumes and snapshots in the pool. */
export interface Contents {
  create(volume: VolumeRecord): Promise<void>
  /** Creates the volume as a consistent copy of its source and extends it to its size. `staged`: where the source is staged. */
  copy(source: ContentSource, volume: VolumeRecord, staged: Staging | undefined): Promise<void>
  /** Creates a consistent copy of the volume, even while it is in use. */
  snapshot(
    volume: VolumeRecord,
    staged: Staging | undefined,
    snapshot: SnapshotRecord,
  ): Promise<{ readonly allocatedBytes: number }>
  /** Never shrinks. Throws NoSpaceError and changes nothing if the pool does not have enough space. */
  grow(volume: VolumeRecord, toBytes: number): Promise<void>
  removeVolume(id: VolumeId): Promise<void>
  removeSnapshot(id: SnapshotId): Promise<void>
  allocatedBytes(id: VolumeId | SnapshotId): Promise<number>
  /** The path of the content if it exists, with or without a record. */
  find(id: VolumeId | SnapshotId): Promise<string | undefined>
  /** Why the volume must not be used, grown or copied: its content is missing or truncated. */
  damage(volume: VolumeRecord): Promise<string | undefined>
  snapshotDamage(snapshot: SnapshotRecord): Promise<string | undefined>
  /** A problem to report in the volume condition: damage, or a less severe one. */
  problem(volume: VolumeRecord): Promise<string | undefined>
}

/** Operations on a volume on this node. */
export interface NodeOperations {
  /**
   * Clears limits that a previous volume left on the device; limit() applies those of the volume.
   * `save` persists a changed record before the step that relies on it.
   */
  stage(
    volume: VolumeRecord,
    staging: Staging,
    options: { readonly mountFlags: readonly string[]; save(volume: VolumeRecord): Promise<void> },
  ): Promise<void>
  unstage(volume: VolumeRecord, path: string): Promise<void>
  isStaged(volume: VolumeRecord, staging: Staging): Promise<boolean>
  publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void>
  /** Removes mounts of this volume at the path. `recorded`: the publication in the mount record, if any. */
  unpublish(volume: VolumeRecord, path: string, recorded: Publication | undefined): Promise<void>
  isPublished(volume: VolumeRecord, publication: Publication): Promise<boolean>
  /** All paths at which the volume is mounted, recorded or not. */
  usedAt(volume: VolumeRecord, presence: MountRecord | undefined): Promise<readonly string[]>
  grow(volume: VolumeRecord, staging: Staging): Promise<Growth>
  usage(volume: VolumeRecord, at: { readonly path: string; readonly accessType: AccessType }): Promise<VolumeSpace>
  /** Applies the limits of a staged volume to these cgroups. */
  limit(volume: VolumeRecord, cgroups: readonly string[]): Promise<Enforcement>
  /** IO since the volume was staged; undefined if it cannot be measured. */
  io(id: VolumeId): Promise<{ readonly totals: IoTotals; readonly rates: IoRates } | undefined>
  /**
   * At startup: compares the mount records with the real mounts and devices, detaches unused devices, and returns the
   * corrected records. `volumes`: all volumes; other devices of the pool are unused. `frozen`: volumes that were being copied
   * when the driver stopped, and may still be frozen.
   */
  recover(
    volumes: readonly VolumeRecord[],
    presences: readonly MountRecord[],
    frozen: ReadonlySet<VolumeId>,
  ): Promise<Recovered>
}

export interface VolumeSpace {
  readonly bytes: { readonly total: number; readonly used?: number; readonly available?: number }
  readonly inodes?: { readonly total: number; readonly used: number; readonly available: number }
}

export interface Recovered {
  readonly mountRecords: readonly MountRecord[]
  /** Corrections that were made, for the log. */
  readonly notes: readonly string[]
  /** Findings that were not changed and need the attention of an operator. */
  readonly warnings: readonly string[]
}
