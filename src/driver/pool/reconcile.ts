// Recovery at startup: makes records, files, devices, mounts and limits consistent after a crash or manual changes.
// Unfinished operations are completed or undone, unused devices are detached, and unknown content is logged but not changed.
import { isDeepStrictEqual } from 'node:util'
import { NoSpaceError } from '../../host/index.ts'
import { type DriverContext, saveMountRecord } from '../context.ts'
import { discardVolume as undoVolume } from '../controller/create-volume.ts'
import { discardSnapshot as undoSnapshot } from '../controller/snapshots.ts'
import type { VolumeId } from '../ids.ts'
import { ON_DEMAND } from './pool.ts'
import { findUnrecorded } from './pool-layout.ts'
import type { VolumeRecord } from './records.ts'
import { removeTree } from './remove-tree.ts'

export async function reconcile(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) driver.pool.record(volume.id, volume)
  for (const snapshot of driver.snapshots.list()) {
    driver.pool.record(snapshot.id, { ...ON_DEMAND, capacityBytes: snapshot.allocatedBytes })
  }
  const frozen = copiedVolumes(driver)
  await finishSnapshots(driver)
  await finishVolumes(driver)
  await recoverMounts(driver, frozen)
  await checkPool(driver)
}

/** Volumes that were being copied and may still be frozen. The driver did not freeze any other. */
function copiedVolumes({ volumes, snapshots }: DriverContext): ReadonlySet<VolumeId> {
  const unfinished = [...volumes.list(), ...snapshots.list()].filter(({ state }) => state === 'creating')
  return new Set(
    unfinished.flatMap((each) => {
      if ('sourceVolumeId' in each) return [each.sourceVolumeId]
      return each.source?.kind === 'volume' ? [each.source.id] : []
    }),
  )
}

/** Logs a failure and continues, so that one damaged volume does not prevent the start of the driver. */
async function guarded(driver: DriverContext, what: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error: Error) => {
    driver.log.error({ what, because: error.message }, 'recovery failed; fix the cause and restart the driver')
  })
}

async function finishVolumes(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) {
    await guarded(driver, `volume ${volume.id} (${volume.state})`, () => finishVolume(volume, driver))
  }
}

async function finishVolume(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  switch (volume.state) {
    case 'creating': // a copy is removed: its creation was never confirmed, and its source may have changed since
      return volume.source ? remove(volume, driver) : finishCreating(volume, driver)
    case 'deleting':
      return remove(volume, driver)
    case 'growing':
      return finishGrowing(volume, driver)
    case 'ready':
      return
  }
}

async function remove(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  await undoVolume(volume, driver)
  driver.log.info({ volume: volume.id, state: volume.state }, 'removed an unfinished volume')
}

/** The volume has no data yet, so it is created again. */
async function finishCreating(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  try {
    await driver.backend.contents.create(volume)
    await driver.volumes.save({ ...volume, state: 'ready' })
    driver.log.info({ volume: volume.id }, 'completed the creation of a volume')
  } catch (error) {
    if (!(error instanceof NoSpaceError)) throw error
    await undoVolume(volume, driver)
    driver.log.warn({ volume: volume.id, because: error.message }, 'could not create a volume; removed it')
  }
}

/** Completes the expansion; without enough space the volume keeps its old size, and the caller retries. */
async function finishGrowing(volume: VolumeRecord, { backend, volumes, pool, log }: DriverContext): Promise<void> {
  const toBytes = volume.growingToBytes ?? volume.capacityBytes
  const settled: VolumeRecord = { ...volume, state: 'ready', growingToBytes: undefined }
  try {
    await backend.contents.grow(volume, toBytes)
    await volumes.save({ ...settled, capacityBytes: toBytes })
    pool.record(volume.id, { ...volume, capacityBytes: toBytes })
    log.info({ volume: volume.id, toBytes }, 'completed the expansion of a volume')
  } catch (error) {
    if (!(error instanceof NoSpaceError)) throw error
    await volumes.save(settled)
    log.warn({ volume: volume.id, toBytes, because: error.message }, 'could not expand a volume; it keeps its size')
  }
}

async function finishSnapshots(driver: DriverContext): Promise<void> {
  for (const snapshot of driver.snapshots.list()) {
    if (snapshot.state === 'ready') continue
    await guarded(driver, `snapshot ${snapshot.id} (${snapshot.state})`, async () => {
      await undoSnapshot(snapshot, driver)
      driver.log.info({ snapshot: snapshot.id, state: snapshot.state }, 'removed an unfinished snapshot')
    })
  }
}

async function recoverMounts(driver: DriverContext, frozen: ReadonlySet<VolumeId>): Promise<void> {
  const { backend, volumes, mountRecords, limits, log } = driver
  const recorded = mountRecords.list()
  const found = await backend.node.recover(volumes.list(), recorded, frozen)
  for (const { id } of recorded) if (!found.mountRecords.some((each) => each.id === id)) await mountRecords.remove(id)
  for (const presence of found.mountRecords) {
    await guarded(driver, `presence of volume ${presence.id}`, async () => {
      if (!isDeepStrictEqual(presence, mountRecords.get(presence.id))) await saveMountRecord(driver, presence)
      const volume = volumes.get(presence.id)
      if (presence.staged && volume) await limits.enforce(volume)
    })
  }
  for (const note of found.notes) log.info({ note }, 'corrected at startup')
  for (const note of found.warnings) log.warn({ note }, 'found at startup and not changed')
}

async function checkPool(driver: DriverContext): Promise<void> {
  const { volumes, snapshots, pool, backend, log } = driver
  const isKnown = (id: string) => volumes.get(id) !== undefined || snapshots.get(id) !== undefined
  const { leftovers, unknown } = await findUnrecorded(pool.directory, isKnown)
  for (const path of leftovers) {
    await guarded(driver, path, async () => {
      await removeTree(path)
      log.info({ path }, 'removed an unfinished copy')
    })
  }
  for (const { path, id } of unknown) {
    log.warn({ path }, 'the pool contains something without a record; it is not changed')
    if (id === undefined) continue
    await guarded(driver, path, async () => {
      pool.record(id, { ...ON_DEMAND, capacityBytes: await backend.contents.allocatedBytes(id) })
    })
  }
  for (const volume of volumes.list()) {
    await guarded(driver, `volume ${volume.id}`, async () => {
      const problem = await backend.contents.problem(volume)
      if (problem) log.error({ volume: volume.id, problem }, 'a volume is damaged')
    })
  }
  for (const snapshot of snapshots.list()) {
    await guarded(driver, `snapshot ${snapshot.id}`, async () => {
      const problem = await backend.contents.snapshotDamage(snapshot)
      if (problem) log.error({ snapshot: snapshot.id, problem }, 'a snapshot is damaged')
    })
  }
}
