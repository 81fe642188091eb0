// Implements the node operations of loop volumes: staging, publishing, growth, usage, limits and recovery. The devices
// of staged volumes are cached in memory and looked up at startup, because devices and mounts outlive the driver.
import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Host, IoLimit, LoopDevice } from '../../host/host.ts'
import { ProgramFailedError } from '../../host/index.ts'
import { failedPrecondition, invalid, withFullStop } from '../errors.ts'
import type { VolumeId } from '../ids.ts'
import { hasLimits, type RateLimits } from '../limits/rates.ts'
import { imagePathOf, scratchIn, volumesIn } from '../pool/pool-layout.ts'
import type { MountRecord, Publication, Staging, VolumeRecord } from '../pool/records.ts'
import type { NodeOperations, RecoveryResult } from './backend.ts'
import type { LoopBackendDeps } from './loop-backend.ts'
import { deviceBytesOf, findDevices, findLoops } from './loop-devices.ts'
import {
  inspectTarget,
  occupiedError,
  prepareTarget,
  removeTarget,
  requireNotCovered,
  unmountVolume,
} from './mount-targets.ts'

type StageOptions = Parameters<NodeOperations['stage']>[2]

interface StageProgress {
  /** Whether the stage has mounted the volume, so that it must unmount it if a later step fails. */
  hasMounted: boolean
}

export function createLoopNode({ host, pool }: LoopBackendDeps): NodeOperations {
  const { loops, filesystems, mounts, limits, counters, usage } = host
  /** The writable devices of staged volumes. */
  const devices = new Map<VolumeId, string>()

  async function stage(volume: VolumeRecord, staging: Staging, options: StageOptions): Promise<void> {
    const image = imagePathOf(pool, volume.id)
    if (staging.accessType === 'mount') {
      const target = await inspectTarget(mounts, staging.path, () => findDevices(loops, image))
      if (target.is === 'other') throw occupiedError(staging.path, target.entry, volume.id)
    }
    const device = await loops.attach(image)
    const progress: StageProgress = { hasMounted: false }
    try {
      if ((await loops.sizeBytes(device)) < deviceBytesOf(volume.capacityBytes)) await loops.refreshSize(device)
      await waitForAll(
        counters.begin(device),
        limits.apply(device, 'none', []), // remove limits of a previous volume with this loop number
        staging.accessType === 'mount'
          ? mountVolume(volume, device, staging, options, progress)
          : volume.isUnused && options.save(markUsed(volume)),
      )
    } catch (error) {
      // Undo the completed steps, because the caller may never retry.
      if (progress.hasMounted) await mounts.unmount(staging.path, { topmostOnly: true }).catch(() => {})
      await detachIfUnused(device, image).catch(() => {})
      throw error
    }
    devices.set(volume.id, device)
  }

  /** Detaches the device unless it is mounted. */
  async function detachIfUnused(device: string, image: string): Promise<void> {
    if ((await mounts.mountsOf(device)).length === 0) await loops.detach(device, { file: image })
  }

  async function mountVolume(
    volume: VolumeRecord,
    device: string,
    { path }: Staging,
    options: StageOptions,
    progress: StageProgress,
  ): Promise<void> {
    const { fsType } = volume
    const isNew = await ensureFilesystem(volume, device)
    if (!isNew) {
      if (volume.needsNewUuid) {
        await filesystems.assignNewUuid(device, fsType, scratchIn(pool, volume.id))
        await options.save(markUsed(volume))
      }
      // ext4 is grown before the mount, which needs no CAP_SYS_RESOURCE. xfs can be grown only after the mount.
      if (fsType === 'ext4' && (await isBelowDeviceSize(device, 'ext4')))
        await filesystems.grow(device, undefined, 'ext4')
    }
    const shouldGrowAfterMount = !isNew && fsType === 'xfs' && (await isBelowDeviceSize(device, 'xfs'))
    await mkdir(path, { recursive: true })
    if (isNew) await options.save(markUsed(volume)) // before the mount, because afterwards a pod can write to it
    if (await mounts.isMountPoint(path))
      await mounts.mount(device, path, fsType) // throws unless this device is mounted there, by a killed driver
    else {
      await mounts.mount(device, path, fsType, options.mountFlags).catch((error: unknown) => {
        throw redactMountFlags(error, volume, options.mountFlags)
      })
      progress.hasMounted = true
    }
    if (shouldGrowAfterMount) await filesystems.grow(device, path, 'xfs')
  }

  /** Formats a volume that has never been used, and returns whether it did so. A used volume is never formatted. */
  async function ensureFilesystem(volume: VolumeRecord, device: string): Promise<boolean> {
    if (volume.isUnused) {
      const keepReservation = volume.provisioning === 'reserved'
      await filesystems.format(device, volume.fsType, { keepReservation, wasInterrupted: true })
      return true
    }
    const content = await filesystems.probe(device)
    if (content.is !== 'filesystem') {
      const reason = content.is === 'blank' ? 'it has no file system' : content.message
      throw failedPrecondition(
        `Volume ${volume.id} cannot be mounted: ${withFullStop(reason)} It has been in use, so it is not formatted. Use it as a block volume, restore it, or delete it with its data.`,
      )
    }
    if (content.type !== volume.fsType) {
      throw failedPrecondition(
        `Volume ${volume.id} contains ${content.type}, but according to its record it has ${volume.fsType}. Nothing was changed. Restore it from a backup, or delete it with its data.`,
      )
    }
    return false
  }

  const isBelowDeviceSize = async (device: string, type: VolumeRecord['fsType']) => {
    const deviceBytes = await loops.sizeBytes(device)
    return deviceBytes - (await filesystems.sizeBytes(device, type)) >= GROWTH_BYTES_MIN
  }

  async function unstage(volume: VolumeRecord, path: string): Promise<void> {
    const image = imagePathOf(pool, volume.id)
    const volumeDevices = await findDevices(loops, image)
    await requireNotCovered(mounts, path, { id: volume.id, devices: volumeDevices })
    for (const device of volumeDevices) await limits.clear(device) // so that dirty data is written quickly
    await unmountVolume(mounts, path, { id: volume.id, devices: volumeDevices })
    for (const device of volumeDevices) {
      counters.end(device)
      await loops.detach(device, { file: image })
    }
    devices.delete(volume.id)
  }

  async function publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void> {
    const { path, isReadOnly, accessType } = publication
    const image = imagePathOf(pool, volume.id)
    const target = await inspectTarget(mounts, path, () => findDevices(loops, image))
    if (target.is === 'other') throw occupiedError(path, target.entry, volume.id)
    const isCreated = target.is === 'nothing' && (await prepareTarget(path, accessType))
    try {
      if (accessType === 'block') {
        // A read-only bind mount of a device node does not prevent writes, but a read-only device does.
        const device = isReadOnly ? await loops.attach(image, { readOnly: true }) : await getDevice(volume)
        await mounts.bind(device, path)
      } else {
        await mounts.bind(staging.path, path, { readOnly: isReadOnly })
      }
    } catch (error) {
      if (target.is === 'nothing') await undoPublish(volume, path, isCreated).catch(() => {})
      throw error
    }
  }

  async function undoPublish(volume: VolumeRecord, path: string, isCreated: boolean): Promise<void> {
    const volumeLoops = await findLoops(loops, imagePathOf(pool, volume.id))
    const volumeDevices = volumeLoops.map(({ device }) => device)
    const { isFree } = await unmountVolume(mounts, path, { id: volume.id, devices: volumeDevices })
    if (isCreated && isFree) await removeTarget(path)
    for (const { device, file, isReadOnly } of volumeLoops) if (isReadOnly) await detachIfUnused(device, file)
  }

  async function unpublish(volume: VolumeRecord, path: string, publication: Publication | undefined): Promise<void> {
    const volumeLoops = await findLoops(loops, imagePathOf(pool, volume.id))
    const { unmountedDevices, isFree } = await unmountVolume(mounts, path, {
      id: volume.id,
      devices: volumeLoops.map(({ device }) => device),
      mayBeStale: publication?.accessType === 'block',
    })
    if (isFree && (publication || unmountedDevices.length > 0)) await removeTarget(path)
    const readOnlyLoops = volumeLoops.filter(
      ({ device, isReadOnly }) => isReadOnly && unmountedDevices.includes(device),
    )
    for (const { device, file } of readOnlyLoops) await detachIfUnused(device, file)
  }

  /** Returns the volume's device if it is still attached. An operator may have detached it. */
  async function findAttachedDevice(id: VolumeId): Promise<string | undefined> {
    const device = devices.get(id)
    if (device === undefined) return undefined
    if (await loops.isBackedBy(device, imagePathOf(pool, id))) return device
    counters.end(device)
    devices.delete(id)
    return undefined
  }

  async function getDevice({ id }: VolumeRecord): Promise<string> {
    const device = await findAttachedDevice(id)
    if (device === undefined) throw failedPrecondition(`Volume ${id} is not attached. Stage it first.`)
    return device
  }

  const isStaged = async (volume: VolumeRecord, { path, accessType }: Staging) => {
    const device = await findAttachedDevice(volume.id)
    if (device === undefined) return false
    return accessType === 'block' || (await mounts.sourceOf(path)) === device
  }

  const isPublished = async (volume: VolumeRecord, { path, accessType, isReadOnly }: Publication) => {
    const source = await mounts.sourceOf(path)
    if (source === undefined) return false
    if (source === (await findAttachedDevice(volume.id))) return true
    return accessType === 'block' && isReadOnly && loops.isBackedBy(source, imagePathOf(pool, volume.id))
  }

  return {
    stage,
    unstage,
    publish,
    unpublish,
    isStaged,
    isPublished,

    async findMountPaths(volume) {
      const entries = []
      for (const device of await findDevices(loops, imagePathOf(pool, volume.id)))
        entries.push(...(await mounts.mountsOf(device)))
      return entries.map((entry) => entry.target)
    },

    async grow(volume, staging) {
      const device = await getDevice(volume)
      if ((await loops.sizeBytes(device)) < deviceBytesOf(volume.capacityBytes)) await loops.refreshSize(device)
      if (staging.accessType === 'block') return { is: 'grown' }
      return filesystems.grow(device, staging.path, volume.fsType)
    },

    async usage(volume, { path, accessType }) {
      if (accessType === 'block') return { bytes: { total: volume.capacityBytes } }
      const space = await usage.measureFilesystem(path)
      return {
        bytes: { total: space.totalBytes, used: space.usedBytes, available: space.availableBytes },
        inodes: { total: space.totalInodes, used: space.usedInodes, available: space.availableInodes },
      }
    },

    async limit(volume, cgroups) {
      const ioLimit = hasLimits(volume.limits) ? ioLimitOf(volume.limits) : 'none'
      return limits.apply(await getDevice(volume), ioLimit, cgroups)
    },

    async io(id) {
      const device = await findAttachedDevice(id)
      return device === undefined ? undefined : counters.read(device)
    },

    recover: (volumes, mountRecords, copiedVolumes) =>
      recoverDevices({ host, pool, devices }, volumes, mountRecords, copiedVolumes),
  }
}

/** Waits until all promises have settled, so that nothing is still running when a failure is handled. */
async function waitForAll(...work: readonly unknown[]): Promise<void> {
  const failure = (await Promise.allSettled(work)).find((candidate) => candidate.status === 'rejected')
  if (failure) throw failure.reason
}

/** Marks the volume as used, so that it is never formatted again. */
const markUsed = (volume: VolumeRecord): VolumeRecord => ({ ...volume, isUnused: undefined, needsNewUuid: undefined })

/** Removes the values of mount flags from the error, because they may be sensitive. */
function redactMountFlags(error: unknown, { id }: VolumeRecord, flags: readonly string[]): unknown {
  if (!(error instanceof ProgramFailedError) || flags.length === 0) return error
  const values = flags.flatMap((flag) => flag.split(',')).flatMap((flag) => flag.split('=').slice(1))
  const message = values.filter(Boolean).reduce((text, value) => text.replaceAll(value, '…'), error.stderr.trim())
  // The device has the expected file system, so the cause is most likely a flag.
  return invalid(
    `Volume ${id} cannot be mounted with these mount flags: ${withFullStop(message)} Check its mount options.`,
  )
}

/** The file system is not grown if it is smaller than its device by less than this. */
const GROWTH_BYTES_MIN = 1_048_576

/** Returns the same limits for reads and writes, which both versions of cgroups limit separately. */
const ioLimitOf = ({ iops, throughputBytes }: RateLimits): IoLimit => ({
  ...(iops === undefined ? {} : { readIops: iops, writeIops: iops }),
  ...(throughputBytes === undefined ? {} : { readBps: throughputBytes, writeBps: throughputBytes }),
})

interface RecoveryDeps {
  readonly host: Host
  readonly pool: string
  readonly devices: Map<VolumeId, string>
}

async function recoverDevices(
  { host: { loops, mounts, limits, counters, filesystems }, pool, devices }: RecoveryDeps,
  volumes: readonly VolumeRecord[],
  mountRecords: readonly MountRecord[],
  copiedVolumes: ReadonlySet<VolumeId>,
): Promise<RecoveryResult> {
  const notes: string[] = []
  const warnings: string[] = []
  const poolLoops = (await loops.list()).filter((loop) => loop.file.startsWith(`${volumesIn(pool)}/`))
  const usedDevices = new Set<string>()
  const recoveredRecords: MountRecord[] = []

  for (const mountRecord of mountRecords) {
    const volume = volumes.find((candidate) => candidate.id === mountRecord.id)
    if (!volume) continue
    const volumeLoops = poolLoops.filter((loop) => loop.file === imagePathOf(pool, volume.id))
    const recoveredStaging = mountRecord.staged && (await findStaging(mountRecord.staged, volumeLoops))
    if (recoveredStaging) {
      devices.set(volume.id, recoveredStaging.device)
      usedDevices.add(recoveredStaging.device)
      await counters.begin(recoveredStaging.device)
      await limits.clear(recoveredStaging.device) // in all cgroups, even unused ones; the limit reconciler writes the limits again
      if (recoveredStaging.staging.accessType === 'mount' && copiedVolumes.has(volume.id))
        await filesystems.thaw(recoveredStaging.staging.path)
    }
    const recoveredPublications: Publication[] = []
    for (const publication of mountRecord.published) {
      const source = await mounts.sourceOf(publication.path)
      if (source !== undefined && volumeLoops.some((loop) => loop.device === source)) {
        usedDevices.add(source)
        recoveredPublications.push(publication)
      } else await removeTarget(publication.path).catch(() => {}) // the publish was not completed
    }
    recoveredRecords.push({ ...mountRecord, staged: recoveredStaging?.staging, published: recoveredPublications })
  }

  for (const loop of poolLoops) {
    if (usedDevices.has(loop.device)) continue
    await limits.clear(loop.device)
    const mountPaths = (await mounts.mountsOf(loop.device)).map((mount) => mount.target)
    if (mountPaths.length > 0) {
      warnings.push(`${loop.device} (${loop.file}) is mounted at ${mountPaths.join(', ')}, which has no record`)
      continue
    }
    const result = await loops.detach(loop.device, { file: loop.file })
    notes.push(
      `${loop.device} (${basename(loop.file)}) was unused and is ${result.is === 'detached' ? 'detached' : 'being detached'}`,
    )
  }
  return { mountRecords: recoveredRecords, notes, warnings }

  async function findStaging(staging: Staging, volumeLoops: readonly LoopDevice[]) {
    const writableLoops = volumeLoops.filter((loop) => !loop.isReadOnly)
    if (staging.accessType === 'block') return writableLoops[0] && { staging, device: writableLoops[0].device }
    const source = await mounts.sourceOf(staging.path)
    const device = writableLoops.find((loop) => loop.device === source)?.device
    return device === undefined ? undefined : { staging, device }
  }
}
