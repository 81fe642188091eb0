// Snapshots: full copies of a volume as it was at one moment, which share blocks with it where the pool can. They
// outlive their volume.
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type {
  CreateSnapshotRequest,
  DeleteSnapshotRequest,
  GetSnapshotRequest,
  ListSnapshotsRequest,
} from '../../csi/gen/csi_pb.js'
import { NoSpaceError } from '../../host/index.ts'
import { type DriverContext, mustBeWhole, refuseUnrecorded, stagingOf, volumeOf } from '../context.ts'
import { invalid, missing, nameTaken, noRoom, noSnapshot, quote } from '../errors.ts'
import { isSnapshotId, snapshotIdOf } from '../ids.ts'
import { AS_WRITTEN } from '../pool/pool.ts'
import { RECORD_FORMAT, type SnapshotRecord } from '../pool/records.ts'
import { checkName } from './names.ts'
import { pageOf } from './pages.ts'

export async function createSnapshot(request: CreateSnapshotRequest, driver: DriverContext) {
  checkName(request.name)
  if (request.sourceVolumeId === '') throw missing('source_volume_id')
  const unknown = Object.keys(request.parameters)[0]
  if (unknown !== undefined) throw invalid(`There is no snapshot parameter ${quote(unknown)}. This driver knows none.`)
  const id = snapshotIdOf(request.name)
  const known = driver.snapshots.get(id)
  if (known?.state === 'ready') return answerKnown(known, request, driver)
  const source = volumeOf(driver, request.sourceVolumeId)

  return driver.locks.run({ exclusive: [id], shared: [source.id] }, async () => {
    const known = driver.snapshots.get(id)
    if (known?.state === 'ready') return answerKnown(known, request, driver)
    if (known) await undo(known, driver)
    await refuseUnrecorded(driver, id)
    const volume = volumeOf(driver, source.id)
    await mustBeWhole(driver, volume, 'copied')
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
    return { snapshot: await snapshotMessage(await cut(snapshot, driver), driver) }
  })
}

/** A snapshot that is there answers also when its volume is gone. */
async function answerKnown(
  known: SnapshotRecord,
  { name, sourceVolumeId }: CreateSnapshotRequest,
  driver: DriverContext,
) {
  if (known.sourceVolumeId !== sourceVolumeId)
    throw nameTaken('snapshot', name, `it is of volume ${known.sourceVolumeId}`)
  return { snapshot: await snapshotMessage(known, driver) }
}

async function cut(snapshot: SnapshotRecord, driver: DriverContext): Promise<SnapshotRecord> {
  const { backend, snapshots, pool, log } = driver
  const volume = volumeOf(driver, snapshot.sourceVolumeId)
  const staged = await stagingOf(driver, volume.id)
  try {
    await snapshots.save(snapshot)
    const { allocatedBytes } = await backend.contents.cut(volume, staged, snapshot)
    await pool.take(snapshot.id, { ...AS_WRITTEN, capacityBytes: allocatedBytes })
    const ready: SnapshotRecord = { ...snapshot, state: 'ready', allocatedBytes }
    await snapshots.save(ready)
    log.info({ snapshot: ready.id, volume: volume.id, allocatedBytes }, 'snapshot made')
    return ready
  } catch (error) {
    await undo(snapshot, driver).catch((undoing: Error) => {
      log.error(
        { snapshot: snapshot.id, because: undoing.message },
        'a snapshot that could not be made could not be removed; the next start will',
      )
    })
    if (error instanceof NoSpaceError) {
      const { availableBytes } = await pool.room(AS_WRITTEN)
      throw noRoom({ wantedBytes: snapshot.sizeBytes, availableBytes, pool: pool.directory })
    }
    throw error
  }
}

export async function undo(snapshot: SnapshotRecord, { backend, snapshots, pool }: DriverContext): Promise<void> {
  await backend.contents.removeSnapshot(snapshot.id)
  await snapshots.remove(snapshot.id)
  pool.release(snapshot.id)
}

export async function deleteSnapshot({ snapshotId }: DeleteSnapshotRequest, driver: DriverContext) {
  if (snapshotId === '') throw missing('snapshot_id')
  if (!isSnapshotId(snapshotId)) return {} // never ours
  return driver.locks.run({ exclusive: [snapshotId] }, async () => {
    const snapshot = driver.snapshots.get(snapshotId)
    if (!snapshot) {
      await refuseUnrecorded(driver, snapshotId)
      return {} // gone already
    }
    await driver.snapshots.save({ ...snapshot, state: 'deleting' })
    await undo(snapshot, driver)
    driver.log.info({ snapshot: snapshotId }, 'snapshot deleted')
    return {}
  })
}

export async function listSnapshots(request: ListSnapshotsRequest, driver: DriverContext) {
  const { snapshotId, sourceVolumeId } = request
  const cutOnes = driver.snapshots.list().filter(({ state }) => state !== 'creating')
  const wanted = cutOnes.filter(
    (snapshot) =>
      (snapshotId === '' || snapshot.id === snapshotId) &&
      (sourceVolumeId === '' || snapshot.sourceVolumeId === sourceVolumeId),
  )
  const { items, nextToken } = pageOf(wanted, request, isSnapshotId)
  const entries = []
  for (const snapshot of items) entries.push({ snapshot: await snapshotMessage(snapshot, driver) })
  return { entries, nextToken }
}

export async function getSnapshot({ snapshotId }: GetSnapshotRequest, driver: DriverContext) {
  if (snapshotId === '') throw missing('snapshot_id')
  const snapshot = isSnapshotId(snapshotId) ? driver.snapshots.get(snapshotId) : undefined
  if (!snapshot || snapshot.state === 'creating') throw noSnapshot(snapshotId)
  return { snapshot: await snapshotMessage(snapshot, driver) }
}

/** One whose content is gone is not ready: nothing can be made from it. */
const snapshotMessage = async (snapshot: SnapshotRecord, { backend }: DriverContext) => ({
  snapshotId: snapshot.id,
  sourceVolumeId: snapshot.sourceVolumeId,
  sizeBytes: BigInt(snapshot.sizeBytes),
  creationTime: timestampFromMs(snapshot.createdAtMs),
  readyToUse: snapshot.state === 'ready' && (await backend.contents.snapshotDamage(snapshot)) === undefined,
})
