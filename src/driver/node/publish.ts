// NodePublishVolume and NodeUnpublishVolume.
import { lstat } from 'node:fs/promises'
import type { NodePublishVolumeRequest, NodeUnpublishVolumeRequest } from '../../csi/gen/csi_pb.js'
import { parseCapability, type RequestedCapability } from '../capabilities.ts'
import {
  type DriverContext,
  mountRecordOf,
  requireUndamaged,
  saveMountRecord,
  stagingOf,
  volumeOf,
} from '../context.ts'
import { alreadyExists, failedPrecondition, invalid, missingField, volumeNotFound } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { hasLimits } from '../limits/rates.ts'
import type { Publication, Staging, VolumeRecord } from '../pool/records.ts'
import { absolutePath } from './paths.ts'
import { checkSupported } from './stage.ts'

/** Added to the volume context by the node agent if CSIDriver has podInfoOnMount. */
const POD_UID = 'csi.storage.k8s.io/pod.uid'
const EPHEMERAL = 'csi.storage.k8s.io/ephemeral'

export async function publishVolume(request: NodePublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.targetPath === '') throw missingField('target_path')
  if (!request.volumeCapability) throw missingField('volume_capability')
  const capability = parseCapability(request.volumeCapability)
  const path = absolutePath(request.targetPath, 'target_path')
  if (request.volumeContext[EPHEMERAL] === 'true') throw invalid('Inline volumes are not supported. Use a claim.')
  const { id } = volumeOf(driver, request.volumeId)
  if (request.stagingTargetPath === '')
    throw failedPrecondition('staging_target_path is required: volumes are staged before they are published.')
  const stagingPath = absolutePath(request.stagingTargetPath, 'staging_target_path')

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = volumeOf(driver, id)
    const isReadOnly = request.readonly || capability.isReadOnly
    checkSupported(volume, { ...capability, isReadOnly }, driver)
    const staged = (await stagingOf(driver, id)) ?? (await reattachDevice(volume, stagingPath, driver))
    if (!staged || staged.path !== stagingPath)
      throw failedPrecondition(`Volume ${id} is not staged at ${stagingPath}. Stage it first.`)
    if (staged.accessType !== capability.accessType)
      throw failedPrecondition(`Volume ${id} is staged as ${staged.accessType}, not as ${capability.accessType}.`)
    const podUid = request.volumeContext[POD_UID]
    await publish(volume, staged, publicationOf(path, capability, isReadOnly, podUid), driver)
    if (hasLimits(volume.limits)) await driver.limits.enforce(volume) // the user may be in a new cgroup
    return {}
  })
}

/** An operator may have detached a staged block device: without a publication no mount keeps it attached. */
async function reattachDevice(volume: VolumeRecord, path: string, driver: DriverContext): Promise<Staging | undefined> {
  const recorded = driver.mountRecords.get(volume.id)?.staged
  if (recorded?.path !== path || recorded.accessType !== 'block') return undefined
  await requireUndamaged(driver, volume, 'published')
  await driver.backend.node.stage(volume, recorded, {
    mountFlags: [],
    save: (changed) => driver.volumes.save(changed),
  })
  driver.log.warn({ volume: volume.id }, 'the device of a staged volume was detached; attached it again')
  return recorded
}

const publicationOf = (
  path: string,
  { accessType, accessMode }: RequestedCapability,
  isReadOnly: boolean,
  podUid?: string,
): Publication => ({
  path,
  accessType,
  accessMode,
  isReadOnly,
  podUid: podUid || undefined,
})

async function publish(
  volume: VolumeRecord,
  staged: Staging,
  wanted: Publication,
  driver: DriverContext,
): Promise<void> {
  const { node } = driver.backend
  const presence = mountRecordOf(driver, volume.id)
  const live: Publication[] = []
  for (const each of presence.published) if (await node.isPublished(volume, each)) live.push(each)

  const there = live.find((each) => each.path === wanted.path)
  if (there) return checkSame(volume, there, wanted)
  const other = live[0]
  if (other && [wanted, other].some((each) => each.accessMode === SINGLE_WRITER)) {
    throw failedPrecondition(
      `Volume ${volume.id} is published at ${other.path}, and ${SINGLE_WRITER} allows only one target path. Unpublish it there first.`,
    )
  }
  const stale = presence.published.find((each) => each.path === wanted.path)
  if (stale) await node.unpublish(volume, stale.path, stale) // its device was detached: clean up the target path
  await saveMountRecord(driver, { ...presence, published: [...live, wanted] })
  try {
    await node.publish(volume, staged, wanted)
  } catch (error) {
    await saveMountRecord(driver, { ...presence, published: live })
    throw error
  }
}

/** Not SINGLE_NODE_WRITER: older callers send that for ReadWriteOnce, which several pods of a node can share. */
const SINGLE_WRITER = 'SINGLE_NODE_SINGLE_WRITER'

function checkSame({ id }: VolumeRecord, there: Publication, wanted: Publication): void {
  const isSame =
    there.accessType === wanted.accessType &&
    there.accessMode === wanted.accessMode &&
    there.isReadOnly === wanted.isReadOnly
  if (isSame) return
  const how = `${there.isReadOnly ? 'read-only' : 'for writing'} as ${there.accessType} ${there.accessMode}`
  throw alreadyExists(
    `Volume ${id} is published at ${there.path} ${how}, which differs from the request. Unpublish it first.`,
  )
}

export async function unpublishVolume(request: NodeUnpublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.targetPath === '') throw missingField('target_path')
  const path = absolutePath(request.targetPath, 'target_path')
  const { volumeId } = request
  if (!isVolumeId(volumeId) || !driver.volumes.get(volumeId)) {
    if (await isNothingAt(path)) return {} // neither volume nor path exists: already unpublished
    throw volumeNotFound(volumeId)
  }

  return driver.locks.run({ exclusive: [volumeId, path] }, async () => {
    const volume = volumeOf(driver, volumeId)
    const presence = mountRecordOf(driver, volumeId)
    const recorded = presence.published.find((each) => each.path === path)
    await driver.backend.node.unpublish(volume, path, recorded)
    if (!recorded) return {}
    await saveMountRecord(driver, { ...presence, published: presence.published.filter((each) => each.path !== path) })
    return {}
  })
}

const isNothingAt = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
