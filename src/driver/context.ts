// Declares what the driver's CSI calls share: their dependencies, checks, and reads and writes of mount records.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Backend } from './backends/backend.ts'
import { failedPrecondition, volumeNotFound } from './errors.ts'
import { isVolumeId, type SnapshotId, type VolumeId } from './ids.ts'
import type { LimitReconciler } from './limits/limit-reconciler.ts'
import type { Locks } from './locks.ts'
import type { TargetRoots } from './node/target-roots.ts'
import type { VolumeLimit } from './node/volume-limit.ts'
import type { Pool } from './pool/pool.ts'
import type { Records } from './pool/record-files.ts'
import {
  type MountRecord,
  RECORD_FORMAT,
  type SnapshotRecord,
  type Staging,
  type VolumeRecord,
} from './pool/records.ts'

export interface DriverContext {
  readonly nodeId: string
  readonly topology: Readonly<Record<string, string>>
  readonly volumes: Records<VolumeRecord>
  readonly snapshots: Records<SnapshotRecord>
  readonly mountRecords: Records<MountRecord>
  readonly pool: Pool
  readonly backend: Backend
  readonly limits: LimitReconciler
  readonly locks: Locks
  readonly targetRoots: TargetRoots
  readonly volumeLimit: VolumeLimit
  readonly clock: Clock
  readonly log: Logger
}

/** Returns the volume. Throws NOT_FOUND if it does not exist, is not created yet, or is being deleted. */
export function getVolumeRecord(driver: DriverContext, id: string): VolumeRecord {
  const volume = isVolumeId(id) ? driver.volumes.get(id) : undefined
  if (!volume || volume.state === 'creating' || volume.state === 'deleting') throw volumeNotFound(id)
  return volume
}

/** Throws if the pool has content of this id without a record. It may be user data, so it is neither reused nor deleted. */
export async function requireNoUnrecordedContent(driver: DriverContext, id: VolumeId | SnapshotId): Promise<void> {
  const path = await driver.backend.contents.find(id)
  if (path === undefined) return
  const setAsidePath = await (isVolumeId(id) ? driver.volumes : driver.snapshots).findSetAside(id)
  throw failedPrecondition(
    setAsidePath === undefined
      ? `${path} exists in the pool without a record, so it is not changed. Move it out of the pool if it is not needed, or use another name.`
      : `${path} exists in the pool, but its record is invalid and was moved to ${setAsidePath}. Neither is changed. Repair the record, move it back and restart the driver; or move both out of the pool.`,
  )
}

/** Throws FAILED_PRECONDITION if the volume's content is missing or truncated, because operations could hide that. */
export async function requireUndamaged(driver: DriverContext, volume: VolumeRecord, verb: string): Promise<void> {
  const damage = await driver.backend.contents.findDamage(volume)
  if (damage) throw failedPrecondition(`Volume ${volume.id} cannot be ${verb}. ${damage}`)
}

export const mountRecordOf = (driver: DriverContext, id: VolumeId): MountRecord =>
  driver.mountRecords.get(id) ?? { format: RECORD_FORMAT, id, published: [] }

/** Returns the recorded staging of the volume if the volume is actually staged. */
export async function findStaging(driver: DriverContext, id: VolumeId): Promise<Staging | undefined> {
  const volume = driver.volumes.get(id)
  const staging = driver.mountRecords.get(id)?.staged
  return volume && staging && (await driver.backend.node.isStaged(volume, staging)) ? staging : undefined
}

/** Saves the record, or removes it if the volume is neither staged nor published. */
export const saveMountRecord = (driver: DriverContext, mountRecord: MountRecord): Promise<void> =>
  mountRecord.staged || mountRecord.published.length > 0
    ? driver.mountRecords.save(mountRecord)
    : driver.mountRecords.remove(mountRecord.id)

/** Returns whether the topology includes this node. */
export const isThisNode = (driver: DriverContext, segments: Readonly<Record<string, string>>): boolean =>
  Object.entries(segments).every(([key, value]) => driver.topology[key] === value)
