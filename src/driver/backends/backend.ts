// What a volume is made of, as the services see it: the contract of the two backends. loop-backend.ts gives every
// volume a device and a file system of its own; directory-backend.ts does what can be done without root.
// A backend keeps no records: it is told what is wanted and makes it so, and every step may be repeated.
import type { Ability, Enforcement, FilesystemType, Growth, IoRates, IoTotals } from '../../host/host.ts'
import type { SnapshotId, VolumeId } from '../ids.ts'
import type {
  AccessType,
  ContentSource,
  PresenceRecord,
  Publication,
  SnapshotRecord,
  Staging,
  VolumeRecord,
} from '../pool/records.ts'

export type BackendName = 'loop' | 'directory'

export interface Backend {
  readonly name: BackendName
  /** What it does not do, as sentences: shown to operators wherever they look. */
  readonly shortcomings: readonly string[]
  /** What volumes get whose class names no file system. */
  readonly defaultFsType: FilesystemType
  /** Whether space is taken from the pool when a reserved volume is made. */
  readonly takesSpaceAtOnce: boolean
  /** Whether a volume with a file system must be grown on the node too. */
  readonly growsOnNode: boolean
  canServe(wanted: {
    readonly accessType: AccessType
    readonly fsType: FilesystemType
    readonly isReadOnly: boolean
  }): Ability
  minimumBytes(wanted: { readonly accessTypes: readonly AccessType[]; readonly fsType: FilesystemType }): number

  readonly contents: Contents
  readonly node: NodeHands
}

/** What lies in the pool. */
export interface Contents {
  make(volume: VolumeRecord): Promise<void>
  /** Fills the new volume from its source as it is at one moment, and gives it its own size. `staged`: where the source is. */
  copy(source: ContentSource, volume: VolumeRecord, staged: Staging | undefined): Promise<void>
  /** A copy of the volume as it is at one moment, even while it is written to. */
  cut(
    volume: VolumeRecord,
    staged: Staging | undefined,
    snapshot: SnapshotRecord,
  ): Promise<{ readonly allocatedBytes: number }>
  /** Never makes it smaller. Throws NoSpaceError and leaves it as it was if the pool has not that much. */
  grow(volume: VolumeRecord, toBytes: number): Promise<void>
  removeVolume(id: VolumeId): Promise<void>
  removeSnapshot(id: SnapshotId): Promise<void>
  allocatedBytes(id: VolumeId | SnapshotId): Promise<number>
  /** Where its content is, if anything is there: also if no record knows it. */
  find(id: VolumeId | SnapshotId): Promise<string | undefined>
  /** Why it must not be used, grown or copied: what was in it is gone, or a part of that. */
  damage(volume: VolumeRecord): Promise<string | undefined>
  snapshotDamage(snapshot: SnapshotRecord): Promise<string | undefined>
  /** What a person should know is wrong with it: damage, or less. */
  problem(volume: VolumeRecord): Promise<string | undefined>
}

/** What is done with a volume on this node. */
export interface NodeHands {
  /** `save` writes a changed record before the step that relies on it. */
  /** Limits that are left on what it uses are gone afterwards; those of the volume come with `limit`. */
  stage(
    volume: VolumeRecord,
    staging: Staging,
    options: { readonly mountFlags: readonly string[]; save(volume: VolumeRecord): Promise<void> },
  ): Promise<void>
  unstage(volume: VolumeRecord, path: string): Promise<void>
  isStaged(volume: VolumeRecord, staging: Staging): Promise<boolean>
  publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void>
  /** Undoes what is of this volume there; `recorded` is what was published there, as far as anyone remembers. */
  unpublish(volume: VolumeRecord, path: string, recorded: Publication | undefined): Promise<void>
  isPublished(volume: VolumeRecord, publication: Publication): Promise<boolean>
  /** Every path that would lose its data if the volume went, whether a record knows it or not. */
  usedAt(volume: VolumeRecord, presence: PresenceRecord | undefined): Promise<readonly string[]>
  grow(volume: VolumeRecord, staging: Staging): Promise<Growth>
  usage(volume: VolumeRecord, at: { readonly path: string; readonly accessType: AccessType }): Promise<VolumeSpace>
  /** Puts the volume's limits in force for these cgroups. Staged volumes only. */
  limit(volume: VolumeRecord, cgroups: readonly string[]): Promise<Enforcement>
  /** What it has been doing since it was staged, where that can be counted. */
  io(id: VolumeId): Promise<{ readonly totals: IoTotals; readonly rates: IoRates } | undefined>
  /**
   * At start: finds what is really there, lets go of what nobody uses, and says what is left of each volume's presence.
   * `volumes` are all that exist; whatever else of ours is attached belongs to nobody. `frozen` are those that were being
   * copied when the driver ended, and that it may have left frozen.
   */
  rediscover(
    volumes: readonly VolumeRecord[],
    presences: readonly PresenceRecord[],
    frozen: ReadonlySet<VolumeId>,
  ): Promise<Rediscovered>
}

export interface VolumeSpace {
  readonly bytes: { readonly total: number; readonly used?: number; readonly available?: number }
  readonly inodes?: { readonly total: number; readonly used: number; readonly available: number }
}

export interface Rediscovered {
  readonly presences: readonly PresenceRecord[]
  /** What was found and put right, as sentences for the log. */
  readonly notes: readonly string[]
  /** What was found and left alone: a person should look. */
  readonly warnings: readonly string[]
}
