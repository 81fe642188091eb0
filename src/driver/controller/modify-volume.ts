// ControllerModifyVolume: new rates. All keys are checked before any is taken; controller and node are one process
// here, so a staged volume feels them at once.
import type { ControllerModifyVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, stagingOf, volumeOf } from '../context.ts'
import { missing } from '../errors.ts'
import { changeRates, parseMutableParameters } from '../parameters.ts'

export async function modifyVolume(request: ControllerModifyVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  const { id } = volumeOf(driver, request.volumeId)
  const change = parseMutableParameters(request.mutableParameters)
  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = volumeOf(driver, id)
    const modified = { ...volume, limits: changeRates(volume.limits, change) }
    await driver.volumes.save(modified)
    if (await stagingOf(driver, id)) await driver.limits.enforce(modified)
    return {}
  })
}
