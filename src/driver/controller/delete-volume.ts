// DeleteVolume: fails while the volume is in use. The record is first marked as deleting, and removed last.
import { CsiError, type CsiFailureCode } from '../../csi/errors.ts'
import type { DeleteVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, findStaging, requireNoUnrecordedContent } from '../context.ts'
import { failedPrecondition, missingField, withFullStop } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { toCsiError } from '../to-csi-error.ts'
import { discardVolume } from './create-volume.ts'

export async function deleteVolume({ volumeId }: DeleteVolumeRequest, driver: DriverContext) {
  if (volumeId === '') throw missingField('volume_id')
  if (!isVolumeId(volumeId)) return {} // not an id of this driver
  return driver.locks.run({ exclusive: [volumeId] }, async () => {
    const volume = driver.volumes.get(volumeId)
    if (!volume) {
      await requireNoUnrecordedContent(driver, volumeId)
      return {} // already deleted
    }
    const staging = await findStaging(driver, volumeId)
    if (staging) throw failedPrecondition(`Volume ${volumeId} is staged at ${staging.path}. Unstage it first.`)
    const paths = await driver.backend.node.findMountPaths(volume, driver.mountRecords.get(volumeId))
    if (paths.length > 0)
      throw failedPrecondition(`Volume ${volumeId} is in use at ${paths.join(', ')}. Unpublish and unstage it first.`)
    await driver.volumes.save({ ...volume, state: 'deleting' })
    await discardVolume(volume, driver).catch((error: unknown) => {
      throw unfinishedDeletionError(volumeId, error)
    })
    driver.limits.remove(volumeId)
    driver.log.info({ volume: volumeId }, 'volume deleted')
    return {}
  })
}

/** Returns the error of a deletion that could not be completed and must be repeated. */
function unfinishedDeletionError(id: string, error: unknown): unknown {
  const cause = toCsiError(error)
  if (!(cause instanceof Error)) return error
  const message = `The deletion of volume ${id} has started and could not be completed: ${withFullStop(cause.message)} Fix the cause and delete the volume again.`
  return cause instanceof CsiError
    ? new CsiError(cause.codeName as CsiFailureCode, message)
    : new CsiError('INTERNAL', message)
}
