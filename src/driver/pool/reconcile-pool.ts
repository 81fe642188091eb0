// Makes records, files, devices, mounts and limits consistent at startup, after a crash or manual changes. Completes or undoes
// unfinished operations, and detaches unused devices. Logs unknown content, but does not change it.
import { isDeepStrictEqual } from 'node:util'
import { removeTree } from '../../base/trees/remove-tree.ts'
import { FileTooLargeError, NoSpaceError } from '../../host/index.ts'
import { type DriverContext, saveMountRecord } from '../context.ts'
import { discardVolume } from '../controller/create-volume.ts'
import { discardSnapshot } from '../controller/snapshots.ts'
import type { VolumeId } from '../ids.ts'
import { ON_DEMAND } from './pool.ts'
import { findUnrecorded } from './pool-layout.ts'
import type { VolumeRecord } from './records.ts'

export async function reconcilePool(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) driver.pool.record(volume.id, volume)
  for (const snapshot of driver.snapshots.list()) {
    driver.pool.record(snapshot.id, { ...ON_DEMAND, capacityBytes: snapshot.allocatedBytes })
  }
  const copiedVolumes = listCopiedVolumes(driver)
  await finishSnapshots(driver)
  await finishVolumes(driver)
  await recoverMounts(driver, copiedVolumes)
  await handleUnrecordedContent(driver)
  await logProblems(driver)
}

/** Returns the volumes that were being copied and may still be frozen. */
function listCopiedVolumes({ volumes, snapshots }: DriverContext): ReadonlySet<VolumeId> {
  const unfinishedRecords = [...volumes.list(), ...snapshots.list()].filter(({ state }) => state === 'creating')
  return new Set(
    unfinishedRecords.flatMap((record) => {
      if ('sourceVolumeId' in record) return [record.sourceVolumeId]
      return record.source?.kind === 'volume' ? [record.source.id] : []
    }),
  )
}

/** Logs a failure and continues, so that one damaged volume does not prevent the start of the driver. */
async function runAndLogFailure(driver: DriverContext, subject: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error: Error) => {
    driver.log.error({ subject, reason: error.message }, 'recovery failed; fix the cause and restart the driver')
  })
}

async function finishVolumes(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) {
    await runAndLogFailure(driver, `volume ${volume.id} (${volume.state})`, () => finishVolume(volume, driver))
  }
}

async function finishVolume(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  switch (volume.state) {
    case 'creating': // a copy is removed, because its creation was never confirmed and its source may have changed
      return volume.source ? removeVolume(volume, driver) : finishCreating(volume, driver)
    case 'deleting':
      return removeVolume(volume, driver)
    case 'growing':
      return finishGrowing(volume, driver)
    case 'ready':
      return
  }
}

async function removeVolume(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  await discardVolume(volume, driver)
  driver.log.info({ volume: volume.id, state: volume.state }, 'removed an unfinished volume')
}

/** Creates the volume again, because it has no data yet. */
async function finishCreating(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  try {
    await driver.backend.contents.create(volume)
    await driver.volumes.save({ ...volume, state: 'ready' })
    driver.log.info({ volume: volume.id }, 'completed the creation of a volume')
  } catch (error) {
    if (!doesNotFit(error)) throw error
    await discardVolume(volume, driver)
    driver.log.warn({ volume: volume.id, reason: error.message }, 'could not create a volume; removed it')
  }
}

/** Completes the expansion. If the new size does not fit, the volume keeps its old size. */
async function finishGrowing(volume: VolumeRecord, { backend, volumes, pool, log }: DriverContext): Promise<void> {
  const toBytes = volume.growingToBytes ?? volume.capacityBytes
  const readyRecord: VolumeRecord = { ...volume, state: 'ready', growingToBytes: undefined }
  try {
    await backend.contents.grow(volume, toBytes)
    await volumes.save({ ...readyRecord, capacityBytes: toBytes })
    pool.record(volume.id, { ...volume, capacityBytes: toBytes })
    log.info({ volume: volume.id, toBytes }, 'completed the expansion of a volume')
  } catch (error) {
    if (!doesNotFit(error)) throw error
    await volumes.save(readyRecord)
    log.warn({ volume: volume.id, toBytes, reason: error.message }, 'could not expand a volume; it keeps its size')
  }
}

const doesNotFit = (error: unknown): error is NoSpaceError | FileTooLargeError =>
  error instanceof NoSpaceError || error instanceof FileTooLargeError

async function finishSnapshots(driver: DriverContext): Promise<void> {
  for (const snapshot of driver.snapshots.list()) {
    if (snapshot.state === 'ready') continue
    await runAndLogFailure(driver, `snapshot ${snapshot.id} (${snapshot.state})`, async () => {
      await discardSnapshot(snapshot, driver)
      driver.log.info({ snapshot: snapshot.id, state: snapshot.state }, 'removed an unfinished snapshot')
    })
  }
}

async function recoverMounts(driver: DriverContext, copiedVolumes: ReadonlySet<VolumeId>): Promise<void> {
  const { backend, volumes, mountRecords, limits, log } = driver
  const previousRecords = mountRecords.list()
  const result = await backend.node.recover(volumes.list(), previousRecords, copiedVolumes)
  for (const { id } of previousRecords)
    if (!result.mountRecords.some((record) => record.id === id)) await mountRecords.remove(id)
  for (const mountRecord of result.mountRecords) {
    await runAndLogFailure(driver, `mount record of volume ${mountRecord.id}`, async () => {
      if (!isDeepStrictEqual(mountRecord, mountRecords.get(mountRecord.id))) await saveMountRecord(driver, mountRecord)
      const volume = volumes.get(mountRecord.id)
      if (mountRecord.staged && volume) await limits.enforce(volume)
    })
  }
  for (const note of result.notes) log.info({ note }, 'corrected at startup')
  for (const warning of result.warnings) log.warn({ note: warning }, 'found at startup and not changed')
}

/** Removes the remains of unfinished operations. Logs other content without a record, and records the space that it uses. */
async function handleUnrecordedContent(driver: DriverContext): Promise<void> {
  const { volumes, snapshots, pool, backend, log } = driver
  const isKnown = (id: string) => volumes.get(id) !== undefined || snapshots.get(id) !== undefined
  const { leftovers, unknownContent } = await findUnrecorded(pool.directory, isKnown)
  for (const path of leftovers) {
    await runAndLogFailure(driver, path, async () => {
      await removeTree(path)
      log.info({ path }, 'removed the remains of an unfinished operation')
    })
  }
  for (const { path, id } of unknownContent) {
    log.warn({ path }, 'the pool contains files without a record; they are not changed')
    if (id === undefined) continue
    await runAndLogFailure(driver, path, async () => {
      pool.record(id, { ...ON_DEMAND, capacityBytes: await backend.contents.allocatedBytes(id) })
    })
  }
}

async function logProblems(driver: DriverContext): Promise<void> {
  const { volumes, snapshots, backend, log } = driver
  for (const volume of volumes.list()) {
    await runAndLogFailure(driver, `volume ${volume.id}`, async () => {
      const problem = await backend.contents.findProblem(volume)
      if (problem) log.error({ volume: volume.id, problem }, 'a volume has a problem')
    })
  }
  for (const snapshot of snapshots.list()) {
    await runAndLogFailure(driver, `snapshot ${snapshot.id}`, async () => {
      const problem = await backend.contents.findSnapshotDamage(snapshot)
      if (problem) log.error({ snapshot: snapshot.id, problem }, 'a snapshot is damaged')
    })
  }
}
