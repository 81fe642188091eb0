// Loop volumes on this node: attach, recover from an earlier crash, format if unused, mount, limit; and the reverse. The
// device of each volume is kept in memory and found again at startup, because devices and mounts outlive the driver.
import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Host, IoLimit, LoopDevice } from '../../host/host.ts'
import { ProgramFailedError } from '../../host/index.ts'
import { failedPrecondition, invalid, withFullStop } from '../errors.ts'
import type { VolumeId } from '../ids.ts'
import { hasLimits, type RateLimits } from '../limits/rates.ts'
import { imageOf, scratchIn, volumesIn } from '../pool/pool-layout.ts'
import type { MountRecord, Publication, Staging, VolumeRecord } from '../pool/records.ts'
import type { NodeOperations, Recovered } from './backend.ts'
import type { LoopBackendDeps } from './loop-backend.ts'
import { deviceBytesOf, devicesOf, loopsOf } from './loop-devices.ts'
import {
  inspectTarget,
  occupied,
  prepareTarget,
  removeTarget,
  requireNotCovered,
  unmountOurs,
} from './mount-targets.ts'

type StageOptions = Parameters<NodeOperations['stage']>[2]

/** What a stage has done so far, to undo if it fails. */
interface Attempt {
  hasMounted: boolean
}

export function createLoopNode({ host, pool }: LoopBackendDeps): NodeOperations {
  const { loops, filesystems, mounts, limits, counters, usage } = host
  /** Staged volume → its writable device. */
  const devices = new Map<VolumeId, string>()

  async function stage(volume: VolumeRecord, staging: Staging, options: StageOptions): Promise<void> {
    const image = imageOf(pool, volume.id)
    if (staging.accessType === 'mount') {
      const there = await inspectTarget(mounts, staging.path, () => devicesOf(loops, image))
      if (there.is === 'other') throw occupied(staging.path, there.entry, volume.id)
    }
    const device = await loops.attach(image)
    const attempt: Attempt = { hasMounted: false }
    try {
      if ((await loops.sizeBytes(device)) < deviceBytesOf(volume.capacityBytes)) await loops.refreshSize(device)
      await waitForAll(
        counters.begin(device),
        limits.apply(device, 'none', []), // a previous volume with this loop number may have left some
        staging.accessType === 'mount'
          ? mountVolume(volume, device, staging, options, attempt)
          : volume.isUnused && options.save(markUsed(volume)),
      )
    } catch (error) {
      // The caller may never retry: undo exactly what this attempt has done.
      if (attempt.hasMounted) await mounts.unmount(staging.path, { topmostOnly: true }).catch(() => {})
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
    attempt: Attempt,
  ): Promise<void> {
    const { fsType } = volume
    const isNew = await ensureFilesystem(volume, device)
    if (!isNew) {
      if (volume.needsNewUuid) {
        await filesystems.newUuid(device, fsType, scratchIn(pool, volume.id))
        await options.save(markUsed(volume))
      }
      // ext4 is grown before the mount, which needs no CAP_SYS_RESOURCE; xfs can be grown only after it.
      if (fsType === 'ext4' && (await isShort(device, 'ext4'))) await filesystems.grow(device, undefined, 'ext4')
    }
    const growAfterMount = !isNew && fsType === 'xfs' && (await isShort(device, 'xfs'))
    await mkdir(path, { recursive: true })
    if (isNew) await options.save(markUsed(volume)) // before the mount, after which the user can write to it
    if (await mounts.isMountPoint(path))
      await mounts.mount(device, path, fsType) // mounted by an attempt that was killed
    else {
      await mounts.mount(device, path, fsType, options.mountFlags).catch((error: unknown) => {
        throw withoutFlags(error, volume, options.mountFlags)
      })
      attempt.hasMounted = true
    }
    if (growAfterMount) await filesystems.grow(device, path, 'xfs')
  }

  /** Formats a volume that has never been used, and returns whether it did. A used volume is never formatted. */
  async function ensureFilesystem(volume: VolumeRecord, device: string): Promise<boolean> {
    if (volume.isUnused) {
      const keepReservation = volume.provisioning === 'reserved'
      await filesystems.format(device, volume.fsType, { keepReservation, wasInterrupted: true })
      return true
    }
    const content = await filesystems.probe(device)
    if (content.is !== 'filesystem') {
      const why = content.is === 'blank' ? 'it has no file system' : content.because
      throw failedPrecondition(
        `Volume ${volume.id} cannot be mounted: ${withFullStop(why)} It has been in use, so it is not formatted. Use it as a block volume, restore it, or delete it.`,
      )
    }
    if (content.type !== volume.fsType) {
      throw failedPrecondition(
        `Volume ${volume.id} contains ${content.type}, but its record says ${volume.fsType}. Nothing was changed.`,
      )
    }
    return false
  }

  const isShort = async (device: string, type: VolumeRecord['fsType']) => {
    const deviceBytes = await loops.sizeBytes(device)
    return deviceBytes - (await filesystems.sizeBytes(device, type)) >= GROWTH_BYTES_MIN
  }

  async function unstage(volume: VolumeRecord, path: string): Promise<void> {
    const image = imageOf(pool, volume.id)
    const over = await devicesOf(loops, image)
    await requireNotCovered(mounts, path, { id: volume.id, devices: over })
    for (const device of over) await limits.clear(device) // so that dirty data is written quickly
    await unmountOurs(mounts, path, { id: volume.id, devices: over })
    for (const device of over) {
      counters.end(device)
      await loops.detach(device, { file: image })
    }
    devices.delete(volume.id)
  }

  async function publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void> {
    const { path, isReadOnly, accessType } = publication
    const image = imageOf(pool, volume.id)
    const there = await inspectTarget(mounts, path, () => devicesOf(loops, image))
    if (there.is === 'other') throw occupied(path, there.entry, volume.id)
    const isMade = there.is === 'nothing' && (await prepareTarget(path, accessType))
    try {
      if (accessType === 'block') {
        // A read-only bind mount of a device node does not prevent writes; a read-only device does.
        const device = isReadOnly ? await loops.attach(image, { readOnly: true }) : await deviceOf(volume)
        await mounts.bind(device, path)
      } else {
        await mounts.bind(staging.path, path, { readOnly: isReadOnly })
      }
    } catch (error) {
      if (there.is === 'nothing') await undoPublish(volume, path, isMade).catch(() => {})
      throw error
    }
  }

  async function undoPublish(volume: VolumeRecord, path: string, isMade: boolean): Promise<void> {
    const over = await loopsOf(loops, imageOf(pool, volume.id))
    const devicesOfVolume = over.map(({ device }) => device)
    const { isFree } = await unmountOurs(mounts, path, { id: volume.id, devices: devicesOfVolume })
    if (isMade && isFree) await removeTarget(path)
    for (const { device, file, isReadOnly } of over) if (isReadOnly) await detachIfUnused(device, file)
  }

  async function unpublish(volume: VolumeRecord, path: string, recorded: Publication | undefined): Promise<void> {
    const over = await loopsOf(loops, imageOf(pool, volume.id))
    const { unmounted, isFree } = await unmountOurs(mounts, path, {
      id: volume.id,
      devices: over.map(({ device }) => device),
      mayBeStale: recorded?.accessType === 'block',
    })
    if (isFree && (recorded || unmounted.length > 0)) await removeTarget(path)
    const views = over.filter(({ device, isReadOnly }) => isReadOnly && unmounted.includes(device))
    for (const { device, file } of views) await detachIfUnused(device, file)
  }

  /** The device of the volume, if still attached: an operator may have detached it, and its number may be reused. */
  async function attachedTo(id: VolumeId): Promise<string | undefined> {
    const device = devices.get(id)
    if (device === undefined) return undefined
    if (await loops.isBackedBy(device, imageOf(pool, id))) return device
    counters.end(device)
    devices.delete(id)
    return undefined
  }

  async function deviceOf({ id }: VolumeRecord): Promise<string> {
    const device = await attachedTo(id)
    if (device === undefined) throw failedPrecondition(`Volume ${id} is not attached. Stage it first.`)
    return device
  }

  const isStaged = async (volume: VolumeRecord, { path, accessType }: Staging) => {
    const device = await attachedTo(volume.id)
    if (device === undefined) return false
    return accessType === 'block' || (await mounts.sourceOf(path)) === device
  }

  const isPublished = async (volume: VolumeRecord, { path, accessType, isReadOnly }: Publication) => {
    const source = await mounts.sourceOf(path)
    if (source === undefined) return false
    if (source === (await attachedTo(volume.id))) return true
    return accessType === 'block' && isReadOnly && loops.isBackedBy(source, imageOf(pool, volume.id))
  }

  return {
    stage,
    unstage,
    publish,
    unpublish,
    isStaged,
    isPublished,

    async usedAt(volume) {
      const entries = []
      for (const device of await devicesOf(loops, imageOf(pool, volume.id)))
        entries.push(...(await mounts.mountsOf(device)))
      return entries.map((entry) => entry.target)
    },

    async grow(volume, staging) {
      const device = await deviceOf(volume)
      if ((await loops.sizeBytes(device)) < deviceBytesOf(volume.capacityBytes)) await loops.refreshSize(device)
      if (staging.accessType === 'block') return { is: 'grown' }
      return filesystems.grow(device, staging.path, volume.fsType)
    },

    async usage(volume, { path, accessType }) {
      if (accessType === 'block') return { bytes: { total: volume.capacityBytes } }
      const space = await usage.ofFilesystem(path)
      return {
        bytes: { total: space.totalBytes, used: space.usedBytes, available: space.availableBytes },
        inodes: { total: space.totalInodes, used: space.usedInodes, available: space.availableInodes },
      }
    },

    async limit(volume, cgroups) {
      const wanted = hasLimits(volume.limits) ? ioLimitOf(volume.limits) : 'none'
      return limits.apply(await deviceOf(volume), wanted, cgroups)
    },

    async io(id) {
      const device = await attachedTo(id)
      return device === undefined ? undefined : counters.read(device)
    },

    recover: (volumes, presences, frozen) => rediscover({ host, pool, devices }, volumes, presences, frozen),
  }
}

/** Waits for all, so that nothing is still running when a failure is handled. */
async function waitForAll(...work: readonly unknown[]): Promise<void> {
  const failure = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failure) throw failure.reason
}

/** From now on the content belongs to the user and is never formatted again. */
const markUsed = (volume: VolumeRecord): VolumeRecord => ({ ...volume, isUnused: undefined, needsNewUuid: undefined })

/** Removes mount flags from the error, because they may be sensitive. */
function withoutFlags(error: unknown, { id }: VolumeRecord, flags: readonly string[]): unknown {
  if (!(error instanceof ProgramFailedError) || flags.length === 0) return error
  const values = flags.flatMap((flag) => flag.split(',')).flatMap((flag) => flag.split('=').slice(1))
  const said = values.filter(Boolean).reduce((text, value) => text.replaceAll(value, '…'), error.stderr.trim())
  // The device has the expected file system, so the cause is most likely a flag.
  return invalid(
    `Volume ${id} cannot be mounted with these mount flags: ${withFullStop(said)} Check its mount options.`,
  )
}

/** Smaller differences between device and file system are not worth growing. */
const GROWTH_BYTES_MIN = 1_048_576

/** Reads and writes are limited separately, in both versions of cgroups. */
const ioLimitOf = ({ iops, throughputBytes }: RateLimits): IoLimit => ({
  ...(iops === undefined ? {} : { readIops: iops, writeIops: iops }),
  ...(throughputBytes === undefined ? {} : { readBps: throughputBytes, writeBps: throughputBytes }),
})

interface Discovery {
  readonly host: Host
  readonly pool: string
  readonly devices: Map<VolumeId, string>
}

async function rediscover(
  { host: { loops, mounts, limits, counters, filesystems }, pool, devices }: Discovery,
  volumes: readonly VolumeRecord[],
  presences: readonly MountRecord[],
  frozen: ReadonlySet<VolumeId>,
): Promise<Recovered> {
  const notes: string[] = []
  const warnings: string[] = []
  const ours = (await loops.list()).filter((loop) => loop.file.startsWith(`${volumesIn(pool)}/`))
  const kept = new Set<string>()
  const found: MountRecord[] = []

  for (const presence of presences) {
    const volume = volumes.find((each) => each.id === presence.id)
    if (!volume) continue
    const over = ours.filter((loop) => loop.file === imageOf(pool, volume.id))
    const staged = presence.staged && (await stagedOn(presence.staged, over))
    if (staged) {
      devices.set(volume.id, staged.device)
      kept.add(staged.device)
      await counters.begin(staged.device)
      await limits.clear(staged.device) // also in cgroups that are no longer used; the limit reconciler writes them again
      if (staged.staging.accessType === 'mount' && frozen.has(volume.id)) await filesystems.thaw(staged.staging.path)
    }
    const published: Publication[] = []
    for (const publication of presence.published) {
      const source = await mounts.sourceOf(publication.path)
      if (source !== undefined && over.some((loop) => loop.device === source)) {
        kept.add(source)
        published.push(publication)
      } else await removeTarget(publication.path).catch(() => {}) // its publish was not completed
    }
    found.push({ ...presence, staged: staged?.staging, published })
  }

  for (const loop of ours) {
    if (kept.has(loop.device)) continue
    await limits.clear(loop.device)
    const mountedAt = (await mounts.mountsOf(loop.device)).map((mount) => mount.target)
    if (mountedAt.length > 0) {
      warnings.push(`${loop.device} (${loop.file}) is mounted at ${mountedAt.join(', ')}, which has no record`)
      continue
    }
    const detached = await loops.detach(loop.device, { file: loop.file })
    notes.push(
      `${loop.device} (${basename(loop.file)}) was unused and is ${detached.is === 'detached' ? 'detached' : 'being detached'}`,
    )
  }
  return { mountRecords: found, notes, warnings }

  async function stagedOn(staging: Staging, over: readonly LoopDevice[]) {
    const writable = over.filter((loop) => !loop.isReadOnly)
    if (staging.accessType === 'block') return writable[0] && { staging, device: writable[0].device }
    const source = await mounts.sourceOf(staging.path)
    const device = writable.find((loop) => loop.device === source)?.device
    return device === undefined ? undefined : { staging, device }
  }
}
