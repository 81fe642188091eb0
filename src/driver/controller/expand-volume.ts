// ControllerExpandVolume: grows the content of the volume in the pool, and the loop device of a staged volume.
// NodeExpandVolume grows the file system.
import { CsiError } from '../../csi/errors.ts'
import type { ControllerExpandVolumeRequest } from '../../csi/gen/csi_pb.js'
import { NoSpaceError } from '../../host/index.ts'
import { parseSupportedCapability } from '../capabilities.ts'
import { parseRange } from '../capacity.ts'
import { type DriverContext, getVolumeRecord, requireUndamaged } from '../context.ts'
import { formatSize, insufficientSpace, invalid, missingField, outOfRange } from '../errors.ts'
import type { VolumeRecord } from '../pool/records.ts'

export async function expandVolume(request: ControllerExpandVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (!request.capacityRange) throw missingField('capacity_range')
  const range = parseRange(request.capacityRange)
  if (range.requiredBytes === 0 && range.limitBytes === 0) throw missingField('capacity_range.required_bytes')
  const id = getVolumeRecord(driver, request.volumeId).id

  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = getVolumeRecord(driver, id)
    const capability =
      request.volumeCapability && parseSupportedCapability(driver.backend, request.volumeCapability, volume.fsType)
    if (capability && !volume.accessTypes.includes(capability.accessType)) {
      throw invalid(`Volume ${id} was not created for access type ${capability.accessType}.`)
    }
    if (range.limitBytes > 0 && volume.capacityBytes > range.limitBytes) {
      throw outOfRange(
        `Volume ${id} has ${formatSize(volume.capacityBytes)}, which exceeds limit_bytes ${formatSize(range.limitBytes)}: volumes never shrink.`,
      )
    }
    await requireUndamaged(driver, volume, 'expanded')
    const grownVolume =
      range.requiredBytes > volume.capacityBytes
        ? await growOrThrowOutOfRange(volume, range.requiredBytes, driver)
        : volume
    const isBlock = capability ? capability.accessType === 'block' : !volume.accessTypes.includes('mount')
    return {
      capacityBytes: BigInt(grownVolume.capacityBytes),
      nodeExpansionRequired: driver.backend.growsOnNode && !isBlock,
    }
  })
}

/**
 * Reports a full pool as OUT_OF_RANGE, which is final. Resizers treat RESOURCE_EXHAUSTED as uncertain and keep requesting the
 * same size, so a lowered request would have no effect.
 */
async function growOrThrowOutOfRange(
  volume: VolumeRecord,
  toBytes: number,
  driver: DriverContext,
): Promise<VolumeRecord> {
  try {
    return await grow(volume, toBytes, driver)
  } catch (error) {
    if (error instanceof CsiError && error.codeName === 'RESOURCE_EXHAUSTED') throw outOfRange(error.message)
    throw error
  }
}

/** Records the new size before the image grows, so that pool/reconcile-pool.ts can complete the expansion after a crash. */
async function grow(volume: VolumeRecord, toBytes: number, driver: DriverContext): Promise<VolumeRecord> {
  const { pool, volumes, backend, log } = driver
  await pool.allocate(volume.id, { ...volume, capacityBytes: toBytes })
  try {
    await volumes.save({ ...volume, state: 'growing', growingToBytes: toBytes })
    await backend.contents.grow(volume, toBytes)
  } catch (error) {
    pool.record(volume.id, volume)
    await volumes.save({ ...volume, state: 'ready', growingToBytes: undefined })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.readAvailable(volume)
      throw insufficientSpace({ requestedBytes: toBytes - volume.capacityBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
  const grownVolume: VolumeRecord = { ...volume, state: 'ready', capacityBytes: toBytes, growingToBytes: undefined }
  await volumes.save(grownVolume)
  log.info({ volume: volume.id, fromBytes: volume.capacityBytes, toBytes }, 'volume expanded')
  return grownVolume
}
