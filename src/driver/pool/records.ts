// What the driver remembers: one small file per volume, per snapshot, and per volume that is in use on this node.
// Records of volumes and snapshots are on the disk before the change they announce, so that after any crash the next
// start knows what was begun. Reading them back is record-files.ts; finishing what was begun is reconcile.ts.
import { createHash } from 'node:crypto'
import type { FilesystemType } from '../../host/host.ts'
import { isSnapshotId, isVolumeId, type SnapshotId, type VolumeId } from '../ids.ts'
import type { RateLimits } from '../limits/rates.ts'

export const RECORD_FORMAT = 1

export type AccessType = 'mount' | 'block'

/** What is written before each step; a record is only ever in one of these. */
export const VOLUME_STATES = ['creating', 'ready', 'growing', 'deleting'] as const
export const SNAPSHOT_STATES = ['creating', 'ready', 'deleting'] as const

export interface VolumeRecord {
  readonly format: typeof RECORD_FORMAT
  readonly id: VolumeId
  /** As the caller chose it. Never part of a path. */
  readonly name: string
  readonly state: (typeof VOLUME_STATES)[number]
  /** What was promised, exactly as asked. While growing: still the old promise. */
  readonly capacityBytes: number
  readonly growingToBytes?: number
  readonly provisioning: 'reserved' | 'thin'
  readonly overcommit: number
  readonly accessTypes: readonly AccessType[]
  /** What it is formatted with when it is first mounted. */
  readonly fsType: FilesystemType
  /** The rates in its create call: a repeat of that call is compared with these. */
  readonly createdWith: RateLimits
  /** The rates now. */
  readonly limits: RateLimits
  readonly source?: ContentSource
  /** A copy that may still carry the file system identity of what it was copied from. */
  readonly needsNewUuid?: boolean
  /** Nobody has been given it yet: what is on the device, if anything, is half of a file system of ours. */
  readonly isUnused?: boolean
}

export type ContentSource =
  | { readonly kind: 'volume'; readonly id: VolumeId }
  | { readonly kind: 'snapshot'; readonly id: SnapshotId }

export interface SnapshotRecord {
  readonly format: typeof RECORD_FORMAT
  readonly id: SnapshotId
  readonly name: string
  readonly state: (typeof SNAPSHOT_STATES)[number]
  readonly sourceVolumeId: VolumeId
  /** The size of the volume when it was cut: a volume made from it is at least as large. */
  readonly sizeBytes: number
  /** What it takes from the pool; known once it is cut. */
  readonly allocatedBytes: number
  readonly fsType: FilesystemType
  readonly accessTypes: readonly AccessType[]
  readonly createdAtMs: number
  /** Its volume had not been used yet, so there is no file system in it. */
  readonly isUnused?: boolean
}

/** Where a volume is on this node. Survives the driver but not the machine, as the mounts do. */
export interface PresenceRecord {
  readonly format: typeof RECORD_FORMAT
  readonly id: VolumeId
  readonly staged?: Staging
  readonly published: readonly Publication[]
}

export interface Staging {
  readonly path: string
  readonly accessType: AccessType
  readonly accessMode: string
  /** A digest: mount flags may be sensitive, and are only ever compared. */
  readonly flagsDigest: string
}

export interface Publication {
  readonly path: string
  readonly accessType: AccessType
  readonly accessMode: string
  readonly isReadOnly: boolean
  /** Tells which cgroups the volume's users are in. */
  readonly podUid?: string
}

export const digestOfFlags = (flags: readonly string[]): string =>
  flags.length === 0 ? '' : createHash('sha256').update(flags.join('\0')).digest('hex').slice(0, 32)

/** The parsed record, or what is wrong with it. `id` is what the file is called: a record must say the same. */
export type Parse<R> = (value: unknown, id: string) => R | { readonly problem: string }

export const parseVolumeRecord: Parse<VolumeRecord> = (value, id) =>
  checked<VolumeRecord>(value, {
    format: (it) => it === RECORD_FORMAT,
    id: (it) => it === id && isVolumeId(id),
    name: isText,
    state: isOneOf(VOLUME_STATES),
    capacityBytes: isBytes,
    growingToBytes: optional(isBytes),
    provisioning: isOneOf(['reserved', 'thin']),
    overcommit: (it) => typeof it === 'number' && it >= 1,
    accessTypes: isListOf(isAccessType),
    fsType: isOneOf(['xfs', 'ext4']),
    createdWith: isRateLimits,
    limits: isRateLimits,
    source: optional(isSource),
    needsNewUuid: optional(isFlag),
    isUnused: optional(isFlag),
  })

export const parseSnapshotRecord: Parse<SnapshotRecord> = (value, id) =>
  checked<SnapshotRecord>(value, {
    format: (it) => it === RECORD_FORMAT,
    id: (it) => it === id && isSnapshotId(id),
    name: isText,
    state: isOneOf(SNAPSHOT_STATES),
    sourceVolumeId: (it) => isText(it) && isVolumeId(it),
    sizeBytes: isBytes,
    allocatedBytes: isBytes,
    fsType: isOneOf(['xfs', 'ext4']),
    accessTypes: isListOf(isAccessType),
    createdAtMs: isBytes,
    isUnused: optional(isFlag),
  })

export const parsePresenceRecord: Parse<PresenceRecord> = (value, id) =>
  checked<PresenceRecord>(value, {
    format: (it) => it === RECORD_FORMAT,
    id: (it) => it === id && isVolumeId(id),
    staged: optional((it) => isMap(it) && isText(it.path) && isAccessType(it.accessType) && isText(it.flagsDigest)),
    published: isListOf((it) => isMap(it) && isText(it.path) && isAccessType(it.accessType) && isFlag(it.isReadOnly)),
  })

type Check = (value: unknown) => boolean

function checked<R>(value: unknown, checks: { readonly [K in keyof Required<R>]: Check }): R | { problem: string } {
  if (!isMap(value)) return { problem: 'it is not a JSON object' }
  for (const [key, check] of Object.entries<Check>(checks)) {
    if (!check(value[key])) return { problem: `its ${key} is ${value[key] === undefined ? 'missing' : 'not usable'}` }
  }
  return value as R
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isBytes: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isOneOf =
  (allowed: readonly string[]): Check =>
  (value) =>
    isText(value) && allowed.includes(value)
const isAccessType = isOneOf(['mount', 'block'])
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const isRateLimits: Check = (value) =>
  isMap(value) && optional(isBytes)(value.iops) && optional(isBytes)(value.throughputBytes)
const isSource: Check = (value) =>
  isMap(value) &&
  isText(value.id) &&
  (value.kind === 'volume' ? isVolumeId(value.id) : value.kind === 'snapshot' && isSnapshotId(value.id))
