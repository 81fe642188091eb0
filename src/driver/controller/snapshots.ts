// Implements the snapshot calls. A snapshot is a copy of its volume and outlives it.
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type {
  CreateSnapshotRequest,
  DeleteSnapshotRequest,
  GetSnapshotRequest,
  ListSnapshotsRequest,
} from '../../csi/gen/csi_pb.js'
import { NoSpaceError } from '../../host/index.ts'
import {
  type DriverContext,
  findStaging,
  getVolumeRecord,
  requireNoUnrecordedContent,
  requireUndamaged,
} from '../context.ts'
import { insufficientSpace, invalid, missingField, nameTakenError, quote, snapshotNotFound } from '../errors.ts'
import { isSnapshotId, snapshotIdOf } from '../ids.ts'
import { ON_DEMAND } from '../pool/pool.ts'
import { RECORD_FORMAT, type SnapshotRecord } from '../pool/records.ts'
import { checkName } from './names.ts'
import { paginate } from './paginate-list.ts'

export async function createSnapshot(request: CreateSnapshotRequest, driver: DriverContext) {
  checkName(request.name)
  if (request.sourceVolumeId === '') throw missingField('source_volume_id')
  const unknownKey = Object.keys(request.parameters)[0]
  if (unknownKey !== undefined)
    throw invalid(`Unknown snapshot parameter ${quote(unknownKey)}. This driver has no snapshot parameters.`)
  const id = snapshotIdOf(request.name)
  const snapshotBeforeLock = driver.snapshots.get(id)
  if (snapshotBeforeLock?.state === 'ready') return returnExisting(snapshotBeforeLock, request, driver)
  const source = getVolumeRecord(driver, request.sourceVolumeId)

  return driver.locks.run({ exclusive: [id], shared: [source.id] }, async () => {
    const existingSnapshot = driver.snapshots.get(id)
    if (existingSnapshot?.state === 'ready') return returnExisting(existingSnapshot, request, driver)
    if (existingSnapshot) await discardSnapshot(existingSnapshot, driver)
    await requireNoUnrecordedContent(driver, id)
    const volume = getVolumeRecord(driver, source.id)
    await requireUndamaged(driver, volume, 'copied')
    const snapshot: SnapshotRecord = {
      format: RECORD_FORMAT,
      id,
      name: request.name,
      state: 'creating',
      sourceVolumeId: volume.id,
      sizeBytes: volume.capacityBytes,
      allocatedBytes: 0,
      fsType: volume.fsType,
      accessTypes: volume.accessTypes,
      createdAtMs: driver.clock.nowMs(),
      ...(volume.isUnused ? { isUnused: true } : {}),
    }
    return { snapshot: await toSnapshotMessage(await createReadySnapshot(snapshot, driver), driver) }
  })
}

/** Returns an existing snapshot, even if its volume has been deleted. */
async function returnExisting(
  existingSnapshot: SnapshotRecord,
  { name, sourceVolumeId }: CreateSnapshotRequest,
  driver: DriverContext,
) {
  if (existingSnapshot.sourceVolumeId !== sourceVolumeId)
    throw nameTakenError('snapshot', name, `it is a snapshot of volume ${existingSnapshot.sourceVolumeId}`)
  return { snapshot: await toSnapshotMessage(existingSnapshot, driver) }
}

async function createReadySnapshot(snapshot: SnapshotRecord, driver: DriverContext): Promise<SnapshotRecord> {
  const { backend, snapshots, pool, log } = driver
  const volume = getVolumeRecord(driver, snapshot.sourceVolumeId)
  const staging = await findStaging(driver, volume.id)
  try {
    await snapshots.save(snapshot)
    const { allocatedBytes } = await backend.contents.snapshot(volume, staging, snapshot)
    await pool.allocate(snapshot.id, { ...ON_DEMAND, capacityBytes: allocatedBytes })
    const readySnapshot: SnapshotRecord = { ...snapshot, state: 'ready', allocatedBytes }
    await snapshots.save(readySnapshot)
    log.info({ snapshot: readySnapshot.id, volume: volume.id, allocatedBytes }, 'snapshot created')
    return readySnapshot
  } catch (error) {
    await discardSnapshot(snapshot, driver).catch((undoError: Error) => {
      log.error(
        { snapshot: snapshot.id, reason: undoError.message },
        'creating a snapshot failed and its remains could not be removed; a repeated request or a restart removes them',
      )
    })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.readAvailable(ON_DEMAND)
      throw insufficientSpace({ requestedBytes: snapshot.sizeBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
}

export async function discardSnapshot(
  snapshot: SnapshotRecord,
  { backend, snapshots, pool }: DriverContext,
): Promise<void> {
  await backend.contents.removeSnapshot(snapshot.id)
  await snapshots.remove(snapshot.id)
  pool.release(snapshot.id)
}

export async function deleteSnapshot({ snapshotId }: DeleteSnapshotRequest, driver: DriverContext) {
  if (snapshotId === '') throw missingField('snapshot_id')
  if (!isSnapshotId(snapshotId)) return {} // not an id of this driver
  return driver.locks.run({ exclusive: [snapshotId] }, async () => {
    const snapshot = driver.snapshots.get(snapshotId)
    if (!snapshot) {
      await requireNoUnrecordedContent(driver, snapshotId)
      return {} // already deleted
    }
    await driver.snapshots.save({ ...snapshot, state: 'deleting' })
    await discardSnapshot(snapshot, driver)
    driver.log.info({ snapshot: snapshotId }, 'snapshot deleted')
    return {}
  })
}

export async function listSnapshots(request: ListSnapshotsRequest, driver: DriverContext) {
  const { snapshotId, sourceVolumeId } = request
  const createdSnapshots = driver.snapshots.list().filter(({ state }) => state !== 'creating')
  const matchingSnapshots = createdSnapshots.filter(
    (snapshot) =>
      (snapshotId === '' || snapshot.id === snapshotId) &&
      (sourceVolumeId === '' || snapshot.sourceVolumeId === sourceVolumeId),
  )
  const { items, nextToken } = paginate(matchingSnapshots, request, isSnapshotId)
  const entries = []
  for (const snapshot of items) entries.push({ snapshot: await toSnapshotMessage(snapshot, driver) })
  return { entries, nextToken }
}

export async function getSnapshot({ snapshotId }: GetSnapshotRequest, driver: DriverContext) {
  if (snapshotId === '') throw missingField('snapshot_id')
  const snapshot = isSnapshotId(snapshotId) ? driver.snapshots.get(snapshotId) : undefined
  if (!snapshot || snapshot.state === 'creating') throw snapshotNotFound(snapshotId)
  return { snapshot: await toSnapshotMessage(snapshot, driver) }
}

/** Returns the CSI message. A damaged snapshot is not ready to use. */
const toSnapshotMessage = async (snapshot: SnapshotRecord, { backend }: DriverContext) => ({
  snapshotId: snapshot.id,
  sourceVolumeId: snapshot.sourceVolumeId,
  sizeBytes: BigInt(snapshot.sizeBytes),
  creationTime: timestampFromMs(snapshot.createdAtMs),
  readyToUse: snapshot.state === 'ready' && (await backend.contents.findSnapshotDamage(snapshot)) === undefined,
})
