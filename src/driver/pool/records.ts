// The types and parsers of the driver's records: one per volume, per snapshot, and per mounted volume. record-files.ts stores
// them.

import { createHash } from 'node:crypto'
import { isRecord } from '../../api/decode.ts'
import type { FilesystemType } from '../../host/host.ts'
import { isSnapshotId, isVolumeId, type SnapshotId, type VolumeId } from '../ids.ts'
import type { RateLimits } from '../limits/rates.ts'

export const RECORD_FORMAT = 1

export type AccessType = 'mount' | 'block'

/** States other than `ready` are written before the operation starts. */
const VOLUME_STATES = ['creating', 'ready', 'growing', 'deleting'] as const
const SNAPSHOT_STATES = ['creating', 'ready', 'deleting'] as const

export interface VolumeRecord {
  readonly format: typeof RECORD_FORMAT
  readonly id: VolumeId
  /** The name in the request, which is never part of a path. */
  readonly name: string
  readonly state: (typeof VOLUME_STATES)[number]
  /** The size, or the old size while the volume grows. */
  readonly capacityBytes: number
  readonly growingToBytes?: number
  readonly provisioning: 'reserved' | 'thin'
  readonly overcommit: number
  readonly accessTypes: readonly AccessType[]
  /** The file system with which the volume is formatted when it is first mounted. */
  readonly fsType: FilesystemType
  /** The limits in the CreateVolume request, which are compared with repeated requests. */
  readonly createdWith: RateLimits
  /** The current limits. */
  readonly limits: RateLimits
  readonly source?: ContentSource
  /** Whether the volume is a copy that may still have the file system UUID of its source. */
  readonly needsNewUuid?: boolean
  /**
   * Whether neither the volume nor its source has been staged. Any data on its device was left by a format that the driver did
   * not finish.
   */
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
  /** The size of the source volume, which is the minimum size of a restored volume. */
  readonly sizeBytes: number
  /** The space in the pool, which is known when the snapshot is ready. */
  readonly allocatedBytes: number
  readonly fsType: FilesystemType
  readonly accessTypes: readonly AccessType[]
  readonly createdAtMs: number
  /** Whether the source volume had `isUnused` when the snapshot was created. */
  readonly isUnused?: boolean
}

/** The paths at which a volume is staged and published on this node. Like the mounts, it is valid until a reboot. */
export interface MountRecord {
  readonly format: typeof RECORD_FORMAT
  readonly id: VolumeId
  readonly staged?: Staging
  readonly published: readonly Publication[]
}

export interface Staging {
  readonly path: string
  readonly accessType: AccessType
  readonly accessMode: string
  /** A digest, because mount flags may be sensitive and are only compared. */
  readonly flagsDigest: string
}

export interface Publication {
  readonly path: string
  readonly accessType: AccessType
  readonly accessMode: string
  readonly isReadOnly: boolean
  /** The UID of the pod, by which its cgroups are found. */
  readonly podUid?: string
}

export const hashFlags = (flags: readonly string[]): string =>
  flags.length === 0 ? '' : createHash('sha256').update(flags.join('\0')).digest('hex').slice(0, 32)

/** Returns the record or its problem. `id` is from the file name and must match the record. */
export type Parse<R> = (value: unknown, id: string) => R | { readonly problem: string }

export const parseVolumeRecord: Parse<VolumeRecord> = (value, id) =>
  checkRecord<VolumeRecord>(value, {
    format: (field) => field === RECORD_FORMAT,
    id: (field) => field === id && isVolumeId(id),
    name: isText,
    state: isOneOf(VOLUME_STATES),
    capacityBytes: isNonNegativeInteger,
    growingToBytes: optional(isNonNegativeInteger),
    provisioning: isOneOf(['reserved', 'thin']),
    overcommit: (field) => typeof field === 'number' && field >= 1,
    accessTypes: isListOf(isAccessType),
    fsType: isOneOf(['xfs', 'ext4']),
    createdWith: isRateLimits,
    limits: isRateLimits,
    source: optional(isSource),
    needsNewUuid: optional(isFlag),
    isUnused: optional(isFlag),
  })

export const parseSnapshotRecord: Parse<SnapshotRecord> = (value, id) =>
  checkRecord<SnapshotRecord>(value, {
    format: (field) => field === RECORD_FORMAT,
    id: (field) => field === id && isSnapshotId(id),
    name: isText,
    state: isOneOf(SNAPSHOT_STATES),
    sourceVolumeId: (field) => isText(field) && isVolumeId(field),
    sizeBytes: isNonNegativeInteger,
    allocatedBytes: isNonNegativeInteger,
    fsType: isOneOf(['xfs', 'ext4']),
    accessTypes: isListOf(isAccessType),
    createdAtMs: isNonNegativeInteger,
    isUnused: optional(isFlag),
  })

export const parseMountRecord: Parse<MountRecord> = (value, id) =>
  checkRecord<MountRecord>(value, {
    format: (field) => field === RECORD_FORMAT,
    id: (field) => field === id && isVolumeId(id),
    staged: optional(
      (field) => isRecord(field) && isText(field.path) && isAccessType(field.accessType) && isText(field.flagsDigest),
    ),
    published: isListOf(
      (item) => isRecord(item) && isText(item.path) && isAccessType(item.accessType) && isFlag(item.isReadOnly),
    ),
  })

type Check = (value: unknown) => boolean

function checkRecord<R>(value: unknown, checks: { readonly [K in keyof Required<R>]: Check }): R | { problem: string } {
  if (!isRecord(value)) return { problem: 'the file does not contain a JSON object' }
  for (const [key, check] of Object.entries<Check>(checks)) {
    if (!check(value[key]))
      return { problem: `the field ${key} is ${value[key] === undefined ? 'missing' : 'invalid'}` }
  }
  return value as R
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isNonNegativeInteger: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isOneOf =
  (allowedValues: readonly string[]): Check =>
  (value) =>
    isText(value) && allowedValues.includes(value)
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
  isRecord(value) && optional(isNonNegativeInteger)(value.iops) && optional(isNonNegativeInteger)(value.throughputBytes)
const isSource: Check = (value) =>
  isRecord(value) &&
  isText(value.id) &&
  (value.kind === 'volume' ? isVolumeId(value.id) : value.kind === 'snapshot' && isSnapshotId(value.id))
