// DeleteVolume: fails while the volume is in use. The record is marked as deleting first and removed last.
import { CsiError, type CsiFailureCode } from '../../csi/errors.ts'
import type { DeleteVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, requireNoUnrecordedContent, stagingOf } from '../context.ts'
import { failedPrecondition, missingField, withFullStop } from '../errors.ts'
import { explain } from '../explain.ts'
import { isVolumeId } from '../ids.ts'
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
    const staged = await stagingOf(driver, volumeId)
    if (staged) throw failedPrecondition(`Volume ${volumeId} is staged at ${staged.path}. Unstage it first.`)
    const paths = await driver.backend.node.usedAt(volume, driver.mountRecords.get(volumeId))
    if (paths.length > 0)
      throw failedPrecondition(`Volume ${volumeId} is in use at ${paths.join(', ')}. Unpublish and unstage it first.`)
    await driver.volumes.save({ ...volume, state: 'deleting' })
    await discardVolume(volume, driver).catch((error: unknown) => {
      throw unfinished(volumeId, error)
    })
    driver.limits.forget(volumeId)
    driver.log.info({ volume: volumeId }, 'volume deleted')
    return {}
  })
}

/** The volume can only be deleted now, because parts of it may be gone. */
function unfinished(id: string, error: unknown): unknown {
  const cause = explain(error)
  if (!(cause instanceof Error)) return error
  const words = `The deletion of volume ${id} has started and could not be completed: ${withFullStop(cause.message)} Fix the cause and delete it again.`
  return cause instanceof CsiError
    ? new CsiError(cause.codeName as CsiFailureCode, words)
    : new CsiError('INTERNAL', words)
}
