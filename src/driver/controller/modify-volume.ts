// ControllerModifyVolume: changes the IO limits. All keys are validated before any is applied. Controller and node run in one
// process, so the limits of a staged volume change immediately.
import type { ControllerModifyVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type DriverContext, findStaging, getVolumeRecord } from '../context.ts'
import { missingField } from '../errors.ts'
import { requireEnforceable } from '../limits/rates.ts'
import { changeRates, parseMutableParameters } from '../parameters.ts'

export async function modifyVolume(request: ControllerModifyVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  const { id } = getVolumeRecord(driver, request.volumeId)
  const change = parseMutableParameters(request.mutableParameters)
  requireEnforceable(change, driver.backend)
  return driver.locks.run({ exclusive: [id] }, async () => {
    const volume = getVolumeRecord(driver, id)
    const modifiedVolume = { ...volume, limits: changeRates(volume.limits, change) }
    await driver.volumes.save(modifiedVolume)
    if (await findStaging(driver, id)) await driver.limits.enforce(modifiedVolume)
    return {}
  })
}
