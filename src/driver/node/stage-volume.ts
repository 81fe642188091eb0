// Implements NodeStageVolume and NodeUnstageVolume. Staging is recorded before it starts, and undone if it fails, because
// after a final error the caller does not call NodeUnstageVolume.
import type { NodeStageVolumeRequest, NodeUnstageVolumeRequest } from '../../csi/gen/csi_pb.js'
import { parseCapability, type RequestedCapability } from '../capabilities.ts'
import {
  type DriverContext,
  findStaging,
  getVolumeRecord,
  mountRecordOf,
  requireUndamaged,
  saveMountRecord,
} from '../context.ts'
import { alreadyExists, asSentence, failedPrecondition, missingField } from '../errors.ts'
import { hasLimits } from '../limits/rates.ts'
import { hashFlags, type Staging, type VolumeRecord } from '../pool/records.ts'
import { parseAbsolutePath } from './paths.ts'

export async function stageVolume(request: NodeStageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.stagingTargetPath === '') throw missingField('staging_target_path')
  if (!request.volumeCapability) throw missingField('volume_capability')
  const capability = parseCapability(request.volumeCapability)
  const path = parseAbsolutePath(request.stagingTargetPath, 'staging_target_path')
  const { id } = getVolumeRecord(driver, request.volumeId)
  await driver.targetRoots.check(path, 'staging_target_path')

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = getVolumeRecord(driver, id)
    checkSupported(volume, capability, driver)
    const { accessType, accessMode, mountFlags } = capability
    const staging: Staging = { path, accessType, accessMode, flagsDigest: hashFlags(mountFlags) }
    const existingStaging = await findStaging(driver, id)
    if (existingStaging) checkSameStaging(volume, existingStaging, staging)
    else {
      await requireUndamaged(driver, volume, 'staged')
      await driver.volumeLimit.run(id, () => stage(volume, staging, mountFlags, driver))
    }
    if (hasLimits(volume.limits)) await driver.limits.enforce(driver.volumes.get(id)!)
    return {}
  })
}

/** Throws FAILED_PRECONDITION if this volume does not support the capability. */
export function checkSupported(volume: VolumeRecord, capability: RequestedCapability, driver: DriverContext): void {
  if (!volume.accessTypes.includes(capability.accessType)) {
    const createdUse = volume.accessTypes[0] === 'block' ? 'as a block volume' : 'with a file system'
    const requestedUse = capability.accessType === 'block' ? 'as a block volume' : 'with a file system'
    throw failedPrecondition(
      `Volume ${volume.id} was created ${createdUse} and cannot be used ${requestedUse}. Create another volume.`,
    )
  }
  if (capability.accessType === 'mount' && capability.fsType && capability.fsType !== volume.fsType) {
    throw failedPrecondition(
      `Volume ${volume.id} has ${volume.fsType}, not ${capability.fsType}. Use the file system of its class.`,
    )
  }
  const ability = driver.backend.checkSupport({ ...capability, fsType: volume.fsType })
  if (!ability.available)
    throw failedPrecondition(`Volume ${volume.id} does not support this access here. ${asSentence(ability.message)}`)
}

function checkSameStaging({ id }: VolumeRecord, existingStaging: Staging, requestedStaging: Staging): void {
  if (existingStaging.path !== requestedStaging.path)
    throw failedPrecondition(`Volume ${id} is already staged at ${existingStaging.path}. Unstage it there first.`)
  const isSame =
    existingStaging.accessType === requestedStaging.accessType &&
    existingStaging.accessMode === requestedStaging.accessMode &&
    existingStaging.flagsDigest === requestedStaging.flagsDigest
  if (!isSame) {
    throw alreadyExists(
      `Volume ${id} is staged at ${existingStaging.path} as ${existingStaging.accessType} ${existingStaging.accessMode}, with options that differ from the request. Unstage it first.`,
    )
  }
}

async function stage(volume: VolumeRecord, staging: Staging, mountFlags: readonly string[], driver: DriverContext) {
  const mountRecord = mountRecordOf(driver, volume.id)
  await saveMountRecord(driver, { ...mountRecord, staged: staging })
  try {
    await driver.backend.node.stage(volume, staging, {
      mountFlags,
      save: (changedVolume) => driver.volumes.save(changedVolume),
    })
  } catch (error) {
    await saveMountRecord(driver, { ...mountRecord, staged: undefined })
    throw error
  }
}

export async function unstageVolume(request: NodeUnstageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.stagingTargetPath === '') throw missingField('staging_target_path')
  const path = parseAbsolutePath(request.stagingTargetPath, 'staging_target_path')
  await driver.targetRoots.check(path, 'staging_target_path')
  const { id } = getVolumeRecord(driver, request.volumeId)

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = getVolumeRecord(driver, id)
    const mountRecord = mountRecordOf(driver, id)
    const mountPaths = await driver.backend.node.findMountPaths(volume, mountRecord)
    // A volume that is mounted at the path is staged, even if its mount record was invalid and set aside.
    if (mountRecord.staged?.path !== path && !mountPaths.includes(path)) return {} // not staged there
    const publishPaths = mountPaths.filter((mountPath) => mountPath !== path)
    if (publishPaths.length > 0)
      throw failedPrecondition(
        `Volume ${id} is still published at ${publishPaths.join(', ')}. Unpublish it there first.`,
      )
    await driver.backend.node.unstage(volume, path)
    driver.limits.remove(id)
    await saveMountRecord(driver, { ...mountRecord, staged: undefined, published: [] })
    return {}
  })
}
