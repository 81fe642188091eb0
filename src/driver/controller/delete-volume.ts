// DeleteVolume: refused while anything uses the volume; otherwise the record says so first and goes last.
import { CsiError, type CsiFailureCode } from '../../csi/errors.ts'
import type { DeleteVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, refuseUnrecorded, stagingOf } from '../context.ts'
import { missing, notNow, stopped } from '../errors.ts'
import { explain } from '../explain.ts'
import { isVolumeId } from '../ids.ts'
import { undo } from './create-volume.ts'

export async function deleteVolume({ volumeId }: DeleteVolumeRequest, driver: DriverContext) {
  if (volumeId === '') throw missing('volume_id')
  if (!isVolumeId(volumeId)) return {} // never ours
  return driver.locks.run({ exclusive: [volumeId] }, async () => {
    const volume = driver.volumes.get(volumeId)
    if (!volume) {
      await refuseUnrecorded(driver, volumeId)
      return {} // gone already
    }
    const staged = await stagingOf(driver, volumeId)
    if (staged) throw notNow(`Volume ${volumeId} is staged at ${staged.path}. Unstage it first.`)
    const paths = await driver.backend.node.usedAt(volume, driver.presences.get(volumeId))
    if (paths.length > 0)
      throw notNow(`Volume ${volumeId} is in use at ${paths.join(', ')}. Unpublish and unstage it first.`)
    await driver.volumes.save({ ...volume, state: 'deleting' })
    await undo(volume, driver).catch((error: unknown) => {
      throw unfinished(volumeId, error)
    })
    driver.limits.forget(volumeId)
    driver.log.info({ volume: volumeId }, 'volume deleted')
    return {}
  })
}

/** From here on it can only be deleted: a part of it may be gone. */
function unfinished(id: string, error: unknown): unknown {
  const cause = explain(error)
  if (!(cause instanceof Error)) return error
  const words = `The deletion of volume ${id} has begun and could not be finished: ${stopped(cause.message)} Mend that and delete it again.`
  return cause instanceof CsiError
    ? new CsiError(cause.codeName as CsiFailureCode, words)
    : new CsiError('INTERNAL', words)
}
