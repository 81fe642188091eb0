// A loop volume on this node: attach, repair what an earlier crash left, format if nothing was ever on it, mount, limit;
// and all of it backwards. Which device a volume has is remembered here and found again at start: the kernel keeps
// devices and mounts whoever made them.
import { mkdir, open, rm, rmdir, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { CsiError } from '../csi/errors.ts'
import type { NodeHands, Rediscovered } from './backend.ts'
import { notNow } from './errors.ts'
import type { Host, IoLimit, LoopDevice, Loops } from './host/host.ts'
import { ProgramFailedError } from './host/index.ts'
import type { VolumeId } from './ids.ts'
import { deviceBytesOf, type LoopBackendDeps } from './loop-backend.ts'
import { imageOf, scratchIn, volumesIn } from './pool-layout.ts'
import { hasLimits, type RateLimits } from './rates.ts'
import type { PresenceRecord, Publication, Staging, VolumeRecord } from './records.ts'

type StageOptions = Parameters<NodeHands['stage']>[2]

export function createLoopNode({ host, pool }: LoopBackendDeps): NodeHands {
  const { files, loops, filesystems, mounts, limits, counters, usage } = host
  /** Volumes that are staged here, and the writable device of each. */
  const devices = new Map<VolumeId, string>()

  async function stage(volume: VolumeRecord, staging: Staging, options: StageOptions): Promise<void> {
    await mendFile(volume)
    const image = imageOf(pool, volume.id)
    const device = await loops.attach(image)
    try {
      if ((await loops.sizeBytes(device)) < deviceBytesOf(volume.capacityBytes)) await loops.refreshSize(device)
      await together(
        counters.begin(device),
        limits.apply(device, 'none', []), // whoever had this number before may have left some
        staging.accessType === 'mount'
          ? mountVolume(volume, device, staging, options)
          : volume.isUnused && options.save(handedOut(volume)),
      )
    } catch (error) {
      // Whoever asked may never ask again: nothing of this attempt stays.
      await mounts.unmount(staging.path).catch(() => {})
      await loops.detach(device, { file: image }).catch(() => {})
      throw error
    }
    devices.set(volume.id, device)
  }

  /** The file as long as the record says: an expansion that was interrupted, or a hand that cut it. */
  async function mendFile(volume: VolumeRecord): Promise<void> {
    const image = imageOf(pool, volume.id)
    const sizes = await files.sizes(image)
    if (!sizes)
      throw notNow(
        `Volume ${volume.id} cannot be used: its file ${image} is gone from the pool. Restore it from a backup, or delete the volume.`,
      )
    const bytes = deviceBytesOf(volume.capacityBytes)
    if (sizes.bytes >= bytes) return
    await (volume.provisioning === 'reserved' ? files.reserve(image, bytes) : files.extend(image, bytes))
  }

  async function mountVolume(
    volume: VolumeRecord,
    device: string,
    { path }: Staging,
    options: StageOptions,
  ): Promise<void> {
    const { fsType } = volume
    const isNew = await ensureFilesystem(volume, device, options)
    if (!isNew) {
      if (volume.needsNewUuid) {
        await filesystems.newUuid(device, fsType, scratchIn(pool, volume.id))
        await options.save(handedOut(volume))
      }
      // ext4 is grown before it is mounted, which works on every kernel; xfs can be grown only after.
      if (fsType === 'ext4' && (await isShort(device, 'ext4'))) await filesystems.grow(device, undefined, 'ext4')
    }
    const growAfterMount = !isNew && fsType === 'xfs' && (await isShort(device, 'xfs'))
    await mkdir(path, { recursive: true })
    if (isNew) await options.save(handedOut(volume)) // before anyone can write to it
    await mounts.mount(device, path, fsType, options.mountFlags).catch((error: unknown) => {
      throw withoutFlags(error, volume, options.mountFlags)
    })
    if (growAfterMount) await filesystems.grow(device, path, 'xfs')
  }

  /** True if one was made now. A device with anything on it is never formatted. */
  async function ensureFilesystem(volume: VolumeRecord, device: string, { save }: StageOptions): Promise<boolean> {
    const make = async () => {
      const keepReservation = volume.provisioning === 'reserved'
      await filesystems.make(device, volume.fsType, { keepReservation, wasInterrupted: true })
      return true
    }
    if (volume.isUnused) return make()
    const content = await filesystems.probe(device)
    if (content.is === 'blank') {
      await save({ ...volume, isUnused: true }) // so that half of a file system is known to be ours
      return make()
    }
    if (content.is === 'unclear') {
      throw notNow(`Volume ${volume.id} cannot be mounted: ${content.because} Use it as a block volume, or delete it.`)
    }
    if (content.type !== volume.fsType) {
      throw notNow(
        `Volume ${volume.id} holds ${content.type}, but ${volume.fsType} was asked for. Nothing was changed.`,
      )
    }
    return false
  }

  const isShort = async (device: string, type: VolumeRecord['fsType']) => {
    const deviceBytes = await loops.sizeBytes(device)
    return deviceBytes - (await filesystems.sizeBytes(device, type)) >= GROWTH_WORTH_BYTES
  }

  async function unstage(volume: VolumeRecord, path: string): Promise<void> {
    const image = imageOf(pool, volume.id)
    const over = await devicesOver(loops, image)
    for (const device of over) await limits.clear(device) // dirty data must get out in time
    const source = await mounts.sourceOf(path)
    if (source !== undefined && over.includes(source)) await mounts.unmount(path)
    for (const device of over) {
      counters.forget(device)
      await loops.detach(device, { file: image })
    }
    devices.delete(volume.id)
  }

  async function publish(volume: VolumeRecord, staging: Staging, publication: Publication): Promise<void> {
    const { path, isReadOnly, accessType } = publication
    try {
      if (accessType === 'block') {
        await ensureFile(path)
        // A read-only view of a device node does not stop writes; a read-only device does.
        await mounts.bind(
          isReadOnly ? await loops.attach(imageOf(pool, volume.id), { readOnly: true }) : deviceOf(volume),
          path,
        )
      } else {
        await mkdir(path, { recursive: true })
        await mounts.bind(staging.path, path, { readOnly: isReadOnly })
      }
    } catch (error) {
      await unpublish(volume, path).catch(() => {})
      throw error
    }
  }

  async function unpublish(volume: VolumeRecord, path: string): Promise<void> {
    const source = await mounts.sourceOf(path).catch(() => undefined)
    const view =
      source === undefined || source === devices.get(volume.id) ? undefined : await otherDevice(volume, source)
    if (source !== undefined && source !== devices.get(volume.id) && !view) {
      throw notNow(`${source} is mounted at ${path}, and that is not volume ${volume.id}. Nothing was changed.`)
    }
    await mounts.unmount(path)
    await removeTarget(path)
    if (!view?.isReadOnly || (await mounts.mountsOf(view.device)).length > 0) return
    await loops.detach(view.device, { file: view.file })
  }

  /** A device of the volume beside its writable one: a read-only view. */
  const otherDevice = async (volume: VolumeRecord, device: string) =>
    (await loops.list()).find((loop) => loop.device === device && loop.file === imageOf(pool, volume.id))

  function deviceOf(volume: VolumeRecord): string {
    const device = devices.get(volume.id)
    if (device === undefined) throw notNow(`Volume ${volume.id} is not attached. Stage it first.`)
    return device
  }

  const isStaged = async (volume: VolumeRecord, { path, accessType }: Staging) => {
    const device = devices.get(volume.id)
    if (device === undefined) return false
    return accessType === 'block' || (await mounts.sourceOf(path).catch(() => undefined)) === device
  }

  const isPublished = async (volume: VolumeRecord, { path, accessType, isReadOnly }: Publication) => {
    const source = await mounts.sourceOf(path).catch(() => undefined)
    if (source === undefined) return false
    if (source === devices.get(volume.id)) return true
    if (accessType !== 'block' || !isReadOnly) return false
    return (await otherDevice(volume, source)) !== undefined
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
      for (const device of await devicesOver(loops, imageOf(pool, volume.id)))
        entries.push(...(await mounts.mountsOf(device)))
      return entries.map((entry) => entry.target)
    },

    async grow(volume, staging) {
      const device = deviceOf(volume)
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
      return limits.apply(deviceOf(volume), wanted, cgroups)
    },

    async io(id) {
      const device = devices.get(id)
      return device === undefined ? undefined : counters.read(device)
    },

    rediscover: (volumes, presences) => rediscover({ host, pool, devices }, volumes, presences),
  }
}

/** Until all have ended, so that nothing still runs when the first failure is dealt with. */
async function together(...work: readonly unknown[]): Promise<void> {
  const failure = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failure) throw failure.reason
}

/** What is on it is its user's from now on, and is never formatted again. */
const handedOut = (volume: VolumeRecord): VolumeRecord => ({ ...volume, isUnused: undefined, needsNewUuid: undefined })

/** Mount flags may be sensitive, so the command that failed is told without them. */
function withoutFlags(error: unknown, { id }: VolumeRecord, flags: readonly string[]): unknown {
  if (!(error instanceof ProgramFailedError) || flags.length === 0) return error
  const values = flags.flatMap((flag) => flag.split(',')).flatMap((flag) => flag.split('=').slice(1))
  const said = values.filter(Boolean).reduce((text, value) => text.replaceAll(value, '…'), error.stderr.trim())
  return new CsiError('INTERNAL', `Volume ${id} cannot be mounted: ${said} Check its mount options.`)
}

/** The smallest growth a file system can make use of: below it, its size and its device's are as good as equal. */
const GROWTH_WORTH_BYTES = 1_048_576

/** Every device over this file, also when the file was deleted under it. */
export const devicesOver = async (loops: Loops, image: string): Promise<string[]> =>
  (await loops.list()).filter((loop) => loop.file === image).map((loop) => loop.device)

/** Reads and writes have a bucket each, in either version of cgroups. */
const ioLimitOf = ({ iops, throughputBytes }: RateLimits): IoLimit => ({
  ...(iops === undefined ? {} : { readIops: iops, writeIops: iops }),
  ...(throughputBytes === undefined ? {} : { readBps: throughputBytes, writeBps: throughputBytes }),
})

async function ensureFile(path: string): Promise<void> {
  const file = await open(path, 'a', 0o660)
  await file.close()
}

/** Only what a publish makes goes: an empty directory or an empty file. */
async function removeTarget(path: string): Promise<void> {
  const known = await stat(path).catch(() => undefined)
  if (!known) return
  if (known.isDirectory()) return rmdir(path)
  if (known.isFile() && known.size === 0) await rm(path, { force: true })
}

interface Discovery {
  readonly host: Host
  readonly pool: string
  readonly devices: Map<VolumeId, string>
}

async function rediscover(
  { host: { loops, mounts, limits, counters, filesystems }, pool, devices }: Discovery,
  volumes: readonly VolumeRecord[],
  presences: readonly PresenceRecord[],
): Promise<Rediscovered> {
  const notes: string[] = []
  const ours = (await loops.list()).filter((loop) => loop.file.startsWith(`${volumesIn(pool)}/`))
  const kept = new Set<string>()
  const found: PresenceRecord[] = []

  for (const presence of presences) {
    const volume = volumes.find((each) => each.id === presence.id)
    if (!volume) continue
    const over = ours.filter((loop) => loop.file === imageOf(pool, volume.id))
    const staged = presence.staged && (await stagedOn(presence.staged, over))
    if (staged) {
      devices.set(volume.id, staged.device)
      kept.add(staged.device)
      await counters.begin(staged.device)
      await limits.clear(staged.device) // also in cgroups that no one names anymore; the keeper writes them anew
      if (staged.staging.accessType === 'mount') await filesystems.thaw(staged.staging.path) // a killed snapshot froze it
    }
    const published: Publication[] = []
    for (const publication of presence.published) {
      const source = await mounts.sourceOf(publication.path).catch(() => undefined)
      if (source !== undefined && over.some((loop) => loop.device === source)) {
        kept.add(source)
        published.push(publication)
      } else await removeTarget(publication.path).catch(() => {}) // its publish never came to an end
    }
    found.push({ ...presence, staged: staged?.staging, published })
  }

  for (const loop of ours) {
    if (kept.has(loop.device)) continue
    await limits.clear(loop.device)
    const mountedAt = (await mounts.mountsOf(loop.device)).map((mount) => mount.target)
    if (mountedAt.length > 0) {
      notes.push(
        `${loop.device} over ${loop.file} is mounted at ${mountedAt.join(', ')}, which no record knows: left as it is`,
      )
      continue
    }
    const detached = await loops.detach(loop.device, { file: loop.file })
    notes.push(
      `${loop.device} over ${basename(loop.file)} was used by nothing and is ${detached.is === 'gone' ? 'detached' : 'going'}`,
    )
  }
  return { presences: found, notes }

  async function stagedOn(staging: Staging, over: readonly LoopDevice[]) {
    const writable = over.filter((loop) => !loop.isReadOnly)
    if (staging.accessType === 'block') return writable[0] && { staging, device: writable[0].device }
    const source = await mounts.sourceOf(staging.path).catch(() => undefined)
    const device = writable.find((loop) => loop.device === source)?.device
    return device === undefined ? undefined : { staging, device }
  }
}
