// At start: brings records, files, devices, mounts and limits back together, whatever came between them. What was
// begun is finished or undone; what nobody uses is let go; what is not known to be ours is reported and left alone.
import { isDeepStrictEqual } from 'node:util'
import { NoSpaceError } from '../../host/index.ts'
import { type DriverContext, savePresence } from '../context.ts'
import { undo as undoVolume } from '../controller/create-volume.ts'
import { undo as undoSnapshot } from '../controller/snapshots.ts'
import type { VolumeId } from '../ids.ts'
import { AS_WRITTEN } from './pool.ts'
import { strangersIn } from './pool-layout.ts'
import type { VolumeRecord } from './records.ts'
import { removeTree } from './remove-tree.ts'

export async function reconcile(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) driver.pool.note(volume.id, volume)
  for (const snapshot of driver.snapshots.list()) {
    driver.pool.note(snapshot.id, { ...AS_WRITTEN, capacityBytes: snapshot.allocatedBytes })
  }
  const frozen = copiedVolumes(driver)
  await settleSnapshots(driver)
  await settleVolumes(driver)
  await findPresences(driver, frozen)
  await lookAround(driver)
}

/** Those that were being copied, and that may be frozen for it. A freeze on any other is its owner's. */
function copiedVolumes({ volumes, snapshots }: DriverContext): ReadonlySet<VolumeId> {
  const unfinished = [...volumes.list(), ...snapshots.list()].filter(({ state }) => state === 'creating')
  return new Set(
    unfinished.flatMap((each) => {
      if ('sourceVolumeId' in each) return [each.sourceVolumeId]
      return each.source?.kind === 'volume' ? [each.source.id] : []
    }),
  )
}

/** One thing on a bad spot of the disk must not keep all others from being served. */
async function guarded(driver: DriverContext, what: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error: Error) => {
    driver.log.error({ what, because: error.message }, 'something could not be put in order and is left for a person')
  })
}

async function settleVolumes(driver: DriverContext): Promise<void> {
  for (const volume of driver.volumes.list()) {
    await guarded(driver, `volume ${volume.id} (${volume.state})`, () => settleVolume(volume, driver))
  }
}

async function settleVolume(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  switch (volume.state) {
    case 'creating': // of a copy no one was told that it exists, and its source may have changed since
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
  driver.log.info({ volume: volume.id, state: volume.state }, 'removed a volume that was left half done')
}

/** There was nothing on it yet, so making it again is as good as having made it. */
async function finishCreating(volume: VolumeRecord, driver: DriverContext): Promise<void> {
  try {
    await driver.backend.contents.make(volume)
    await driver.volumes.save({ ...volume, state: 'ready' })
    driver.log.info({ volume: volume.id }, 'finished making a volume')
  } catch (error) {
    if (!(error instanceof NoSpaceError)) throw error
    await undoVolume(volume, driver)
    driver.log.warn({ volume: volume.id, because: error.message }, 'a volume could not be made and was removed')
  }
}

/** The caller has no answer yet: grown is what it asked for, and if there is no room the old size is still there. */
async function finishGrowing(volume: VolumeRecord, { backend, volumes, pool, log }: DriverContext): Promise<void> {
  const toBytes = volume.growingToBytes ?? volume.capacityBytes
  const settled: VolumeRecord = { ...volume, state: 'ready', growingToBytes: undefined }
  try {
    await backend.contents.grow(volume, toBytes)
    await volumes.save({ ...settled, capacityBytes: toBytes })
    pool.note(volume.id, { ...volume, capacityBytes: toBytes })
    log.info({ volume: volume.id, toBytes }, 'finished growing a volume')
  } catch (error) {
    if (!(error instanceof NoSpaceError)) throw error
    await volumes.save(settled)
    log.warn({ volume: volume.id, toBytes, because: error.message }, 'a volume could not be grown and keeps its size')
  }
}

async function settleSnapshots(driver: DriverContext): Promise<void> {
  for (const snapshot of driver.snapshots.list()) {
    if (snapshot.state === 'ready') continue
    await guarded(driver, `snapshot ${snapshot.id} (${snapshot.state})`, async () => {
      await undoSnapshot(snapshot, driver)
      driver.log.info({ snapshot: snapshot.id, state: snapshot.state }, 'removed a snapshot that was left half done')
    })
  }
}

async function findPresences(driver: DriverContext, frozen: ReadonlySet<VolumeId>): Promise<void> {
  const { backend, volumes, presences, limits, log } = driver
  const recorded = presences.list()
  const found = await backend.node.rediscover(volumes.list(), recorded, frozen)
  for (const { id } of recorded) if (!found.presences.some((each) => each.id === id)) await presences.remove(id)
  for (const presence of found.presences) {
    await guarded(driver, `presence of volume ${presence.id}`, async () => {
      if (!isDeepStrictEqual(presence, presences.get(presence.id))) await savePresence(driver, presence)
      const volume = volumes.get(presence.id)
      if (presence.staged && volume) await limits.enforce(volume)
    })
  }
  for (const note of found.notes) log.info({ note }, 'found at start')
  for (const note of found.warnings) log.warn({ note }, 'found at start, and left as it is')
}

async function lookAround(driver: DriverContext): Promise<void> {
  const { volumes, snapshots, pool, backend, log } = driver
  const isKnown = (id: string) => volumes.get(id) !== undefined || snapshots.get(id) !== undefined
  const { leftovers, unknown } = await strangersIn(pool.directory, isKnown)
  for (const path of leftovers) {
    await guarded(driver, path, async () => {
      await removeTree(path)
      log.info({ path }, 'removed an unfinished copy')
    })
  }
  for (const { path, id } of unknown) {
    log.warn({ path }, 'there is something in the pool that no record knows; it is left as it is')
    if (id === undefined) continue
    await guarded(driver, path, async () => {
      pool.note(id, { ...AS_WRITTEN, capacityBytes: await backend.contents.allocatedBytes(id) })
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
