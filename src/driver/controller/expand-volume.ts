// ControllerExpandVolume: a larger promise, a longer file, a longer device. The file system follows on the node.
import { CsiError } from '../../csi/errors.ts'
import type { ControllerExpandVolumeRequest } from '../../csi/gen/csi_pb.js'
import { NoSpaceError } from '../../host/index.ts'
import { wishOn } from '../capabilities.ts'
import { rangeOf } from '../capacity.ts'
import { type DriverContext, mustBeWhole, volumeOf } from '../context.ts'
import { invalid, missing, noRoom, outOfRange, sizeText } from '../errors.ts'
import type { VolumeRecord } from '../pool/records.ts'

export async function expandVolume(request: ControllerExpandVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (!request.capacityRange) throw missing('capacity_range')
  const range = rangeOf(request.capacityRange)
  if (range.requiredBytes === 0 && range.limitBytes === 0) throw missing('capacity_range.required_bytes')
  const id = volumeOf(driver, request.volumeId).id

  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = volumeOf(driver, id)
    const wish = request.volumeCapability && wishOn(driver.backend, request.volumeCapability, volume.fsType)
    if (wish && !volume.accessTypes.includes(wish.accessType)) {
      throw invalid(`Volume ${id} was not made for access type ${wish.accessType}.`)
    }
    if (range.limitBytes > 0 && volume.capacityBytes > range.limitBytes) {
      throw outOfRange(
        `Volume ${id} has ${sizeText(volume.capacityBytes)} already, and volumes never shrink to ${sizeText(range.limitBytes)}.`,
      )
    }
    await mustBeWhole(driver, volume, 'expanded')
    const grown =
      range.requiredBytes > volume.capacityBytes ? await growOrRefuse(volume, range.requiredBytes, driver) : volume
    const isBlock = wish ? wish.accessType === 'block' : !volume.accessTypes.includes('mount')
    return {
      capacityBytes: BigInt(grown.capacityBytes),
      nodeExpansionRequired: driver.backend.growsOnNode && !isBlock,
    }
  })
}

/**
 * No room is a final no here. RESOURCE_EXHAUSTED leaves open what has become of the volume, and resizers then hold on to
 * the size: a request that was lowered to one that fits would never reach us.
 */
async function growOrRefuse(volume: VolumeRecord, toBytes: number, driver: DriverContext): Promise<VolumeRecord> {
  try {
    return await grow(volume, toBytes, driver)
  } catch (error) {
    if (error instanceof CsiError && error.codeName === 'RESOURCE_EXHAUSTED') throw outOfRange(error.message)
    throw error
  }
}

/** The intent is on the disk before the file grows: reconcile.ts carries on from it. */
export async function grow(volume: VolumeRecord, toBytes: number, driver: DriverContext): Promise<VolumeRecord> {
  const { pool, volumes, backend, log } = driver
  await pool.take(volume.id, { ...volume, capacityBytes: toBytes })
  try {
    await volumes.save({ ...volume, state: 'growing', growingToBytes: toBytes })
    await backend.contents.grow(volume, toBytes)
  } catch (error) {
    pool.note(volume.id, volume)
    await volumes.save({ ...volume, state: 'ready', growingToBytes: undefined })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.room(volume)
      throw noRoom({ wantedBytes: toBytes - volume.capacityBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
  const grown: VolumeRecord = { ...volume, state: 'ready', capacityBytes: toBytes, growingToBytes: undefined }
  await volumes.save(grown)
  log.info({ volume: volume.id, fromBytes: volume.capacityBytes, toBytes }, 'volume grown')
  return grown
}
