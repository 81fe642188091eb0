// What every call of the driver works with, and the few questions many of them ask.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Backend } from './backends/backend.ts'
import { notNow, noVolume } from './errors.ts'
import { isVolumeId, type SnapshotId, type VolumeId } from './ids.ts'
import type { LimitKeeper } from './limits/limit-keeper.ts'
import type { Locks } from './locks.ts'
import type { Pool } from './pool/pool.ts'
import type { Records } from './pool/record-files.ts'
import {
  type PresenceRecord,
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
  readonly presences: Records<PresenceRecord>
  readonly pool: Pool
  readonly backend: Backend
  readonly limits: LimitKeeper
  readonly locks: Locks
  readonly clock: Clock
  readonly log: Logger
}

/** A volume that has been made and not deleted. Whatever form the id has, nothing else is said about it. */
export function volumeOf(driver: DriverContext, id: string): VolumeRecord {
  const volume = isVolumeId(id) ? driver.volumes.get(id) : undefined
  if (!volume || volume.state === 'creating' || volume.state === 'deleting') throw noVolume(id)
  return volume
}

/** Content without a record is somebody's data: its name is not given to anything else, and it is not deleted. */
export async function refuseUnrecorded(driver: DriverContext, id: VolumeId | SnapshotId): Promise<void> {
  const path = await driver.backend.contents.find(id)
  if (path === undefined) return
  const aside = await (isVolumeId(id) ? driver.volumes : driver.snapshots).setAside(id)
  throw notNow(
    aside === undefined
      ? `${path} is in the pool, but no record knows it. It is left as it is. Move it out of the pool if it is not needed, or use another name.`
      : `${path} is in the pool, but its record cannot be understood and was moved to ${aside}. Both are left as they are. Mend the record, move it back and restart the driver; or move both out of the pool.`,
  )
}

/** Throws FAILED_PRECONDITION for a volume whose content is gone or cut: whatever is done with it would hide that. */
export async function mustBeWhole(driver: DriverContext, volume: VolumeRecord, verb: string): Promise<void> {
  const damage = await driver.backend.contents.damage(volume)
  if (damage) throw notNow(`Volume ${volume.id} cannot be ${verb}. ${damage}`)
}

export const presenceOf = (driver: DriverContext, id: VolumeId): PresenceRecord =>
  driver.presences.get(id) ?? { format: RECORD_FORMAT, id, published: [] }

/** Where the volume is staged, if it really is. */
export async function stagingOf(driver: DriverContext, id: VolumeId): Promise<Staging | undefined> {
  const volume = driver.volumes.get(id)
  const staged = driver.presences.get(id)?.staged
  return volume && staged && (await driver.backend.node.isStaged(volume, staged)) ? staged : undefined
}

/** What is not there anymore is not remembered either. */
export const savePresence = (driver: DriverContext, presence: PresenceRecord): Promise<void> =>
  presence.staged || presence.published.length > 0
    ? driver.presences.save(presence)
    : driver.presences.remove(presence.id)

/** Whether a topology a caller names includes this node. */
export const isHere = (driver: DriverContext, segments: Readonly<Record<string, string>>): boolean =>
  Object.entries(segments).every(([key, value]) => driver.topology[key] === value)
