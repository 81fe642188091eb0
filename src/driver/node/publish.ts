// NodePublishVolume and NodeUnpublishVolume: the volume at the path where its user expects it.
import { lstat } from 'node:fs/promises'
import type { NodePublishVolumeRequest, NodeUnpublishVolumeRequest } from '../../csi/gen/csi_pb.js'
import { type Wish, wishOf } from '../capabilities.ts'
import { type DriverContext, mustBeWhole, presenceOf, savePresence, stagingOf, volumeOf } from '../context.ts'
import { alreadyThere, invalid, missing, notNow, noVolume } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { hasLimits } from '../limits/rates.ts'
import type { Publication, Staging, VolumeRecord } from '../pool/records.ts'
import { absolutePath } from './paths.ts'
import { checkPossible } from './stage.ts'

/** What a node agent adds to the volume context where CSIDriver asks for it (podInfoOnMount). */
const POD_UID = 'csi.storage.k8s.io/pod.uid'
const EPHEMERAL = 'csi.storage.k8s.io/ephemeral'

export async function publishVolume(request: NodePublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (request.targetPath === '') throw missing('target_path')
  if (!request.volumeCapability) throw missing('volume_capability')
  const wish = wishOf(request.volumeCapability)
  const path = absolutePath(request.targetPath, 'target_path')
  if (request.volumeContext[EPHEMERAL] === 'true') throw invalid('Inline volumes are not supported. Use a claim.')
  const { id } = volumeOf(driver, request.volumeId)
  if (request.stagingTargetPath === '')
    throw notNow('staging_target_path is missing: volumes are staged before they are published.')
  const stagingPath = absolutePath(request.stagingTargetPath, 'staging_target_path')

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    const isReadOnly = request.readonly || wish.isReadOnly
    checkPossible(volume, { ...wish, isReadOnly }, driver)
    const staged = (await stagingOf(driver, id)) ?? (await attachAgain(volume, stagingPath, driver))
    if (!staged || staged.path !== stagingPath)
      throw notNow(`Volume ${id} is not staged at ${stagingPath}. Stage it first.`)
    if (staged.accessType !== wish.accessType)
      throw notNow(`Volume ${id} is staged as ${staged.accessType}, not as ${wish.accessType}.`)
    const podUid = request.volumeContext[POD_UID]
    await publish(volume, staged, publicationOf(path, wish, isReadOnly, podUid), driver)
    if (hasLimits(volume.limits)) await driver.limits.enforce(volume) // its user may be in a cgroup that is new here
    return {}
  })
}

/** A hand may detach a raw device while nothing is published: there is no mount that would keep it. */
async function attachAgain(volume: VolumeRecord, path: string, driver: DriverContext): Promise<Staging | undefined> {
  const recorded = driver.presences.get(volume.id)?.staged
  if (recorded?.path !== path || recorded.accessType !== 'block') return undefined
  await mustBeWhole(driver, volume, 'published')
  await driver.backend.node.stage(volume, recorded, {
    mountFlags: [],
    save: (changed) => driver.volumes.save(changed),
  })
  driver.log.warn({ volume: volume.id }, 'the device of a staged volume was gone and is attached again')
  return recorded
}

const publicationOf = (
  path: string,
  { accessType, accessMode }: Wish,
  isReadOnly: boolean,
  podUid?: string,
): Publication => ({
  path,
  accessType,
  accessMode,
  isReadOnly,
  ...(podUid ? { podUid } : {}),
})

async function publish(
  volume: VolumeRecord,
  staged: Staging,
  wanted: Publication,
  driver: DriverContext,
): Promise<void> {
  const { node } = driver.backend
  const presence = presenceOf(driver, volume.id)
  const live: Publication[] = []
  for (const each of presence.published) if (await node.isPublished(volume, each)) live.push(each)

  const there = live.find((each) => each.path === wanted.path)
  if (there) return checkSame(volume, there, wanted)
  const other = live[0]
  if (other && [wanted, other].some((each) => each.accessMode === ONE_PLACE_ONLY)) {
    throw notNow(
      `Volume ${volume.id} is published at ${other.path}, and ${ONE_PLACE_ONLY} allows one place only. Unpublish it there first.`,
    )
  }
  const stale = presence.published.find((each) => each.path === wanted.path)
  if (stale) await node.unpublish(volume, stale.path, stale) // its device is gone: what is left of it is in the way
  await savePresence(driver, { ...presence, published: [...live, wanted] })
  try {
    await node.publish(volume, staged, wanted)
  } catch (error) {
    await savePresence(driver, { ...presence, published: live })
    throw error
  }
}

/** SINGLE_NODE_WRITER is what older callers send for ReadWriteOnce, which several pods of a node may share. */
const ONE_PLACE_ONLY = 'SINGLE_NODE_SINGLE_WRITER'

function checkSame({ id }: VolumeRecord, there: Publication, wanted: Publication): void {
  const isSame =
    there.accessType === wanted.accessType &&
    there.accessMode === wanted.accessMode &&
    there.isReadOnly === wanted.isReadOnly
  if (isSame) return
  const how = `${there.isReadOnly ? 'read-only' : 'for writing'} as ${there.accessType} ${there.accessMode}`
  throw alreadyThere(
    `Volume ${id} is published at ${there.path} ${how}, which is not what is asked for now. Unpublish it first.`,
  )
}

export async function unpublishVolume(request: NodeUnpublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missing('volume_id')
  if (request.targetPath === '') throw missing('target_path')
  const path = absolutePath(request.targetPath, 'target_path')
  const { volumeId } = request
  if (!isVolumeId(volumeId) || !driver.volumes.get(volumeId)) {
    if (await isNothingAt(path)) return {} // both are gone: done long ago
    throw noVolume(volumeId)
  }

  return driver.locks.run({ exclusive: [volumeId, path] }, async () => {
    const volume = volumeOf(driver, volumeId)
    const presence = presenceOf(driver, volumeId)
    const recorded = presence.published.find((each) => each.path === path)
    await driver.backend.node.unpublish(volume, path, recorded)
    if (!recorded) return {}
    await savePresence(driver, { ...presence, published: presence.published.filter((each) => each.path !== path) })
    return {}
  })
}

const isNothingAt = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
