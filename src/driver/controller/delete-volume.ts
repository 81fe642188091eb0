// DeleteVolume: refused while anything uses the volume; otherwise the record says so first and goes last.
import type { DeleteVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, stagingOf } from '../context.ts'
import { missing, notNow } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { undo } from './create-volume.ts'

export async function deleteVolume({ volumeId }: DeleteVolumeRequest, driver: DriverContext) {
  if (volumeId === '') throw missing('volume_id')
  if (!isVolumeId(volumeId) || !driver.volumes.get(volumeId)) return {} // gone already, or never ours
  return driver.locks.run({ exclusive: [volumeId] }, async () => {
    const volume = driver.volumes.get(volumeId)
    if (!volume) return {}
    const staged = await stagingOf(driver, volumeId)
    if (staged) throw notNow(`Volume ${volumeId} is staged at ${staged.path}. Unstage it first.`)
    const paths = await driver.backend.node.usedAt(volume, driver.presences.get(volumeId))
    if (paths.length > 0)
      throw notNow(`Volume ${volumeId} is in use at ${paths.join(', ')}. Unpublish and unstage it first.`)
    await driver.volumes.save({ ...volume, state: 'deleting' })
    await undo(volume, driver)
    driver.limits.forget(volumeId)
    driver.log.info({ volume: volumeId }, 'volume deleted')
    return {}
  })
}
