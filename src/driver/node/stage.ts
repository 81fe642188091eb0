// NodeStageVolume and NodeUnstageVolume. Staging is recorded before it starts, and undone if it fails, because after a
// final error the caller does not call NodeUnstageVolume.
import type { NodeStageVolumeRequest, NodeUnstageVolumeRequest } from '../../csi/gen/csi_pb.js'
import { parseCapability, type RequestedCapability } from '../capabilities.ts'
import {
  type DriverContext,
  mountRecordOf,
  requireUndamaged,
  saveMountRecord,
  stagingOf,
  volumeOf,
} from '../context.ts'
import { alreadyExists, asSentence, failedPrecondition, missingField } from '../errors.ts'
import { hasLimits } from '../limits/rates.ts'
import { digestOfFlags, type Staging, type VolumeRecord } from '../pool/records.ts'
import { absolutePath } from './paths.ts'

export async function stageVolume(request: NodeStageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.stagingTargetPath === '') throw missingField('staging_target_path')
  if (!request.volumeCapability) throw missingField('volume_capability')
  const capability = parseCapability(request.volumeCapability)
  const path = absolutePath(request.stagingTargetPath, 'staging_target_path')
  const { id } = volumeOf(driver, request.volumeId)

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    checkSupported(volume, capability, driver)
    const { accessType, accessMode, mountFlags } = capability
    const staging: Staging = { path, accessType, accessMode, flagsDigest: digestOfFlags(mountFlags) }
    const staged = await stagingOf(driver, id)
    if (staged) checkSame(volume, staged, staging)
    else {
      await requireUndamaged(driver, volume, 'staged')
      await stage(volume, staging, mountFlags, driver)
    }
    if (hasLimits(volume.limits)) await driver.limits.enforce(driver.volumes.get(id)!)
    return {}
  })
}

/** Throws FAILED_PRECONDITION if this volume does not support the capability. */
export function checkSupported(volume: VolumeRecord, capability: RequestedCapability, driver: DriverContext): void {
  if (!volume.accessTypes.includes(capability.accessType)) {
    const created = volume.accessTypes[0] === 'block' ? 'as a block volume' : 'with a file system'
    const wanted = capability.accessType === 'block' ? 'as a block volume' : 'with a file system'
    throw failedPrecondition(
      `Volume ${volume.id} was created ${created} and cannot be used ${wanted}. Create another volume.`,
    )
  }
  if (capability.accessType === 'mount' && capability.fsType && capability.fsType !== volume.fsType) {
    throw failedPrecondition(
      `Volume ${volume.id} has ${volume.fsType}, not ${capability.fsType}. Use the file system of its class.`,
    )
  }
  const ability = driver.backend.canServe({ ...capability, fsType: volume.fsType })
  if (!ability.yes)
    throw failedPrecondition(`Volume ${volume.id} does not support this access here. ${asSentence(ability.because)}`)
}

function checkSame({ id }: VolumeRecord, staged: Staging, wanted: Staging): void {
  if (staged.path !== wanted.path)
    throw failedPrecondition(`Volume ${id} is already staged at ${staged.path}. Unstage it there first.`)
  const isSame =
    staged.accessType === wanted.accessType &&
    staged.accessMode === wanted.accessMode &&
    staged.flagsDigest === wanted.flagsDigest
  if (!isSame) {
    throw alreadyExists(
      `Volume ${id} is staged at ${staged.path} as ${staged.accessType} ${staged.accessMode}, with other options. Unstage it first.`,
    )
  }
}

async function stage(volume: VolumeRecord, staging: Staging, mountFlags: readonly string[], driver: DriverContext) {
  const before = mountRecordOf(driver, volume.id)
  await saveMountRecord(driver, { ...before, staged: staging })
  try {
    await driver.backend.node.stage(volume, staging, { mountFlags, save: (changed) => driver.volumes.save(changed) })
  } catch (error) {
    await saveMountRecord(driver, { ...before, staged: undefined })
    throw error
  }
}

export async function unstageVolume(request: NodeUnstageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.stagingTargetPath === '') throw missingField('staging_target_path')
  const path = absolutePath(request.stagingTargetPath, 'staging_target_path')
  const { id } = volumeOf(driver, request.volumeId)

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    const presence = mountRecordOf(driver, id)
    const mountedAt = await driver.backend.node.usedAt(volume, presence)
    // A mount of this volume at the path counts as staged even if its mount record was invalid and set aside.
    if (presence.staged?.path !== path && !mountedAt.includes(path)) return {} // not staged there
    const users = mountedAt.filter((each) => each !== path)
    if (users.length > 0)
      throw failedPrecondition(`Volume ${id} is still published at ${users.join(', ')}. Unpublish it there first.`)
    await driver.backend.node.unstage(volume, path)
    driver.limits.forget(id)
    await saveMountRecord(driver, { ...presence, staged: undefined, published: [] })
    return {}
  })
}
