// Implements NodePublishVolume and NodeUnpublishVolume.
import { lstat } from 'node:fs/promises'
import type { NodePublishVolumeRequest, NodeUnpublishVolumeRequest } from '../../csi/gen/csi_pb.js'
import { parseCapability, type RequestedCapability } from '../capabilities.ts'
import {
  type DriverContext,
  findStaging,
  getVolumeRecord,
  mountRecordOf,
  requireUndamaged,
  saveMountRecord,
} from '../context.ts'
import { alreadyExists, failedPrecondition, invalid, missingField, volumeNotFound } from '../errors.ts'
import { isVolumeId } from '../ids.ts'
import { hasLimits } from '../limits/rates.ts'
import type { Publication, Staging, VolumeRecord } from '../pool/records.ts'
import { parseAbsolutePath } from './paths.ts'
import { checkSupported } from './stage-volume.ts'

/** The keys that the node agent adds to the volume context if CSIDriver has podInfoOnMount. */
const POD_UID_KEY = 'csi.storage.k8s.io/pod.uid'
const EPHEMERAL_KEY = 'csi.storage.k8s.io/ephemeral'

export async function publishVolume(request: NodePublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.targetPath === '') throw missingField('target_path')
  if (!request.volumeCapability) throw missingField('volume_capability')
  const capability = parseCapability(request.volumeCapability)
  const path = parseAbsolutePath(request.targetPath, 'target_path')
  if (request.volumeContext[EPHEMERAL_KEY] === 'true') throw invalid('Inline volumes are not supported. Use a claim.')
  const { id } = getVolumeRecord(driver, request.volumeId)
  if (request.stagingTargetPath === '')
    throw failedPrecondition('staging_target_path is required: volumes are staged before they are published.')
  const stagingPath = parseAbsolutePath(request.stagingTargetPath, 'staging_target_path')
  await driver.targetRoots.check(path, 'target_path')

  return driver.locks.run({ exclusive: [id, path] }, async () => {
    const volume = getVolumeRecord(driver, id)
    const isReadOnly = request.readonly || capability.isReadOnly
    checkSupported(volume, { ...capability, isReadOnly }, driver)
    const staging = (await findStaging(driver, id)) ?? (await reattachDevice(volume, stagingPath, driver))
    if (!staging || staging.path !== stagingPath)
      throw failedPrecondition(`Volume ${id} is not staged at ${stagingPath}. Stage it first.`)
    if (staging.accessType !== capability.accessType)
      throw failedPrecondition(`Volume ${id} is staged as ${staging.accessType}, not as ${capability.accessType}.`)
    const podUid = request.volumeContext[POD_UID_KEY]
    await publish(volume, staging, publicationOf(path, capability, isReadOnly, podUid), driver)
    if (hasLimits(volume.limits)) await driver.limits.enforce(volume) // the pod may be in a new cgroup
    return {}
  })
}

/** Attaches the device of a staged block volume again, because an operator can detach it until the volume is published. */
async function reattachDevice(volume: VolumeRecord, path: string, driver: DriverContext): Promise<Staging | undefined> {
  const staging = driver.mountRecords.get(volume.id)?.staged
  if (staging?.path !== path || staging.accessType !== 'block') return undefined
  await requireUndamaged(driver, volume, 'published')
  await driver.backend.node.stage(volume, staging, {
    mountFlags: [],
    save: (changedVolume) => driver.volumes.save(changedVolume),
  })
  driver.log.warn({ volume: volume.id }, 'the device of a staged volume was detached; attached it again')
  return staging
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
  staging: Staging,
  requestedPublication: Publication,
  driver: DriverContext,
): Promise<void> {
  const { node } = driver.backend
  const mountRecord = mountRecordOf(driver, volume.id)
  const activePublications: Publication[] = []
  for (const publication of mountRecord.published)
    if (await node.isPublished(volume, publication)) activePublications.push(publication)

  const existingPublication = activePublications.find((publication) => publication.path === requestedPublication.path)
  if (existingPublication) return checkSamePublication(volume, existingPublication, requestedPublication)
  const otherPublication = activePublications[0]
  if (
    otherPublication &&
    [requestedPublication, otherPublication].some((publication) => publication.accessMode === SINGLE_WRITER)
  ) {
    throw failedPrecondition(
      `Volume ${volume.id} is published at ${otherPublication.path}, but ${SINGLE_WRITER} allows only one target path. Unpublish it there first.`,
    )
  }
  const stalePublication = mountRecord.published.find((publication) => publication.path === requestedPublication.path)
  // Clean up the target path of a publication whose device was detached.
  if (stalePublication) await node.unpublish(volume, stalePublication.path, stalePublication)
  await saveMountRecord(driver, { ...mountRecord, published: [...activePublications, requestedPublication] })
  try {
    await node.publish(volume, staging, requestedPublication)
  } catch (error) {
    await saveMountRecord(driver, { ...mountRecord, published: activePublications })
    throw error
  }
}

/** SINGLE_NODE_WRITER is not restricted, because older callers use it for ReadWriteOnce, which pods of a node can share. */
const SINGLE_WRITER = 'SINGLE_NODE_SINGLE_WRITER'

function checkSamePublication(
  { id }: VolumeRecord,
  existingPublication: Publication,
  requestedPublication: Publication,
): void {
  const isSame =
    existingPublication.accessType === requestedPublication.accessType &&
    existingPublication.accessMode === requestedPublication.accessMode &&
    existingPublication.isReadOnly === requestedPublication.isReadOnly
  if (isSame) return
  const mode = `${existingPublication.isReadOnly ? 'read-only' : 'for writing'} as ${existingPublication.accessType} ${existingPublication.accessMode}`
  throw alreadyExists(
    `Volume ${id} is published at ${existingPublication.path} ${mode}, which differs from the request. Unpublish it first.`,
  )
}

export async function unpublishVolume(request: NodeUnpublishVolumeRequest, driver: DriverContext) {
  if (request.volumeId === '') throw missingField('volume_id')
  if (request.targetPath === '') throw missingField('target_path')
  const path = parseAbsolutePath(request.targetPath, 'target_path')
  await driver.targetRoots.check(path, 'target_path')
  const { volumeId } = request
  if (!isVolumeId(volumeId) || !driver.volumes.get(volumeId)) {
    if (await isAbsent(path)) return {} // neither the volume nor the path exists: already unpublished
    throw volumeNotFound(volumeId)
  }

  return driver.locks.run({ exclusive: [volumeId, path] }, async () => {
    const volume = getVolumeRecord(driver, volumeId)
    const mountRecord = mountRecordOf(driver, volumeId)
    const publication = mountRecord.published.find((candidate) => candidate.path === path)
    await driver.backend.node.unpublish(volume, path, publication)
    if (!publication) return {}
    await saveMountRecord(driver, {
      ...mountRecord,
      published: mountRecord.published.filter((candidate) => candidate.path !== path),
    })
    return {}
  })
}

const isAbsent = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
