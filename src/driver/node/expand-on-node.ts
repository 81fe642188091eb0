// NodeExpandVolume: grows the file system of a volume that is staged or published at the path.
import type { NodeExpandVolumeRequest } from '../../csi/gen/csi_pb.js'
import { parseRange } from '../capacity.ts'
import { type DriverContext, findStaging, getVolumeRecord } from '../context.ts'
import { failedPrecondition, formatSize, missingField, notAtPath, outOfRange, withFullStop } from '../errors.ts'
import { getMountAt } from './mount-at-path.ts'

export async function expandOnNode(request: NodeExpandVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.volumePath === '') throw missingField('volume_path')
  const { id } = getVolumeRecord(driver, request.volumeId)
  const range = parseRange(request.capacityRange)

  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = getVolumeRecord(driver, id)
    await getMountAt(volume, request.volumePath, driver)
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
