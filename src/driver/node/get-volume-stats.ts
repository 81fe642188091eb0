// NodeGetVolumeStats: returns the usage and the condition of a volume that is staged or published at the path.
import type { NodeGetVolumeStatsRequest } from '../../csi/gen/csi_pb.js'
import { VolumeUsage_Unit as Unit } from '../../csi/gen/csi_pb.js'
import { type DriverContext, getVolumeRecord } from '../context.ts'
import { describeCondition } from '../controller/volume-message.ts'
import { missingField } from '../errors.ts'
import { getMountAt } from './mount-at-path.ts'

export async function getVolumeStats(request: NodeGetVolumeStatsRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.volumePath === '') throw missingField('volume_path')
  const volume = getVolumeRecord(driver, request.volumeId)
  const location = await getMountAt(volume, request.volumePath, driver)
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
