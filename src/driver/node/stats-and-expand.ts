// Implements NodeGetVolumeStats and NodeExpandVolume for a path at which the volume is staged or published.
import type { NodeExpandVolumeRequest, NodeGetVolumeStatsRequest } from '../../csi/gen/csi_pb.js'
import { VolumeUsage_Unit as Unit } from '../../csi/gen/csi_pb.js'
import { parseRange } from '../capacity.ts'
import { type DriverContext, findStaging, getVolumeRecord } from '../context.ts'
import { describeCondition } from '../controller/volume-message.ts'
import { failedPrecondition, formatSize, missingField, notAtPath, outOfRange, withFullStop } from '../errors.ts'
import type { AccessType, VolumeRecord } from '../pool/records.ts'
import { cleanPath } from './paths.ts'

export async function getVolumeStats(request: NodeGetVolumeStatsRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.volumePath === '') throw missingField('volume_path')
  const volume = getVolumeRecord(driver, request.volumeId)
  const location = await findAtPath(volume, request.volumePath, driver)
  const { bytes, inodes } = await driver.backend.node.usage(volume, location)
  return {
    usage: [toVolumeUsage(Unit.BYTES, bytes), ...(inodes ? [toVolumeUsage(Unit.INODES, inodes)] : [])],
    volumeCondition: await describeCondition(volume, driver),
  }
}

const toVolumeUsage = (
  unit: Unit,
  { total, used, available }: { total: number; used?: number; available?: number },
) => ({
  unit,
  total: BigInt(total),
  used: BigInt(used ?? 0),
  available: BigInt(available ?? 0),
})

export async function expandOnNode(request: NodeExpandVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.volumePath === '') throw missingField('volume_path')
  const { id } = getVolumeRecord(driver, request.volumeId)
  const range = parseRange(request.capacityRange)

  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = getVolumeRecord(driver, id)
    await findAtPath(volume, request.volumePath, driver)
    const staging = await findStaging(driver, id)
    if (!staging) throw notAtPath(id, request.volumePath)
    if (range.requiredBytes > volume.capacityBytes) {
      throw outOfRange(
        `Volume ${id} has ${formatSize(volume.capacityBytes)}. Expand it to ${formatSize(range.requiredBytes)} at the controller first.`,
      )
    }
    const growth = await driver.backend.node.grow(volume, staging)
    if (growth.is !== 'grown') {
      throw failedPrecondition(
        `The file system of volume ${id} cannot grow while it is in use; it grows when it is next staged: ${withFullStop(growth.message)}`,
      )
    }
    return { capacityBytes: BigInt(volume.capacityBytes) }
  })
}

/** Returns the staging or publication at this path. Throws NOT_FOUND if there is none. */
async function findAtPath(
  volume: VolumeRecord,
  volumePath: string,
  driver: DriverContext,
): Promise<{ path: string; accessType: AccessType }> {
  const path = cleanPath(volumePath)
  const staging = await findStaging(driver, volume.id)
  if (staging?.path === path) return staging
  const publication = driver.mountRecords.get(volume.id)?.published.find((candidate) => candidate.path === path)
  if (publication && (await driver.backend.node.isPublished(volume, publication))) return publication
  throw notAtPath(volume.id, volumePath)
}
