// NodeStageVolume and NodeUnstageVolume. What is about to be done is recorded first; if it fails it is undone, because
// after a final error no one will ask to undo it.
import type { NodeStageVolumeRequest, NodeUnstageVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type Wish, wishOf } from '../capabilities.ts'
import { type DriverContext, mustBeWhole, presenceOf, savePresence, stagingOf, volumeOf } from '../context.ts'
import { alreadyThere, missing, notNow, sentence } from '../errors.ts'
import { hasLimits } from '../limits/rates.ts'
import { digestOfFlags, type Staging, type VolumeRecord } from '../pool/records.ts'
import { absolutePath } from './paths.ts'

export async function stageVolume(request: NodeStageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (request.stagingTargetPath === '') throw missing('staging_target_path')
  if (!request.volumeCapability) throw missing('volume_capability')
  const wish = wishOf(request.volumeCapability)
  const path = absolutePath(request.stagingTargetPath, 'staging_target_path')
  const { id } = volumeOf(driver, request.volumeId)

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    checkPossible(volume, wish, driver)
    const { accessType, accessMode, mountFlags } = wish
    const staging: Staging = { path, accessType, accessMode, flagsDigest: digestOfFlags(mountFlags) }
    const staged = await stagingOf(driver, id)
    if (staged) checkSame(volume, staged, staging)
    else {
      await mustBeWhole(driver, volume, 'staged')
      await stage(volume, staging, mountFlags, driver)
    }
    if (hasLimits(volume.limits)) await driver.limits.enforce(driver.volumes.get(id)!)
    return {}
  })
}

/** Throws FAILED_PRECONDITION for what this very volume cannot do. */
export function checkPossible(volume: VolumeRecord, wish: Wish, driver: DriverContext): void {
  if (!volume.accessTypes.includes(wish.accessType)) {
    const made = volume.accessTypes[0] === 'block' ? 'as a block volume' : 'with a file system'
    const wanted = wish.accessType === 'block' ? 'as a block volume' : 'with a file system'
    throw notNow(`Volume ${volume.id} was made ${made} and cannot be used ${wanted}. Make another volume for that.`)
  }
  if (wish.accessType === 'mount' && wish.fsType && wish.fsType !== volume.fsType) {
    throw notNow(`Volume ${volume.id} has ${volume.fsType}, not ${wish.fsType}. Use the file system of its class.`)
  }
  const ability = driver.backend.canServe({ ...wish, fsType: volume.fsType })
  if (!ability.yes) throw notNow(`Volume ${volume.id} cannot be used like that here. ${sentence(ability.because)}`)
}

function checkSame({ id }: VolumeRecord, staged: Staging, wanted: Staging): void {
  if (staged.path !== wanted.path)
    throw notNow(`Volume ${id} is staged at ${staged.path} already. Unstage it there first.`)
  const isSame =
    staged.accessType === wanted.accessType &&
    staged.accessMode === wanted.accessMode &&
    staged.flagsDigest === wanted.flagsDigest
  if (!isSame) {
    throw alreadyThere(
      `Volume ${id} is staged at ${staged.path} as ${staged.accessType} ${staged.accessMode}, with other options than these. Unstage it first.`,
    )
  }
}

async function stage(volume: VolumeRecord, staging: Staging, mountFlags: readonly string[], driver: DriverContext) {
  const before = presenceOf(driver, volume.id)
  await savePresence(driver, { ...before, staged: staging })
  try {
    await driver.backend.node.stage(volume, staging, { mountFlags, save: (changed) => driver.volumes.save(changed) })
  } catch (error) {
    await savePresence(driver, { ...before, staged: undefined })
    throw error
  }
}

export async function unstageVolume(request: NodeUnstageVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (request.stagingTargetPath === '') throw missing('staging_target_path')
  const path = absolutePath(request.stagingTargetPath, 'staging_target_path')
  const { id } = volumeOf(driver, request.volumeId)

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    const presence = presenceOf(driver, id)
    const mountedAt = await driver.backend.node.usedAt(volume, presence)
    // What is mounted there is of this volume, also if the record of it was lost with a record that was set aside.
    if (presence.staged?.path !== path && !mountedAt.includes(path)) return {} // it is not staged there
    const users = mountedAt.filter((each) => each !== path)
    if (users.length > 0)
      throw notNow(`Volume ${id} is still published at ${users.join(', ')}. Unpublish it there first.`)
    await driver.backend.node.unstage(volume, path)
    driver.limits.forget(id)
    await savePresence(driver, { ...presence, staged: undefined, published: [] })
    return {}
  })
}
