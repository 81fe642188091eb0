// Volumes as image files in the pool, each attached as a loop device, with a file system or raw, and with its own size, IO
// limits and counters. Operations on the node are loop-node.ts.
import type { Ability, FilesystemType, Host } from '../../host/host.ts'
import { type HostFacts, minimumBytes } from '../../host/index.ts'
import { failedPrecondition, sizeText, withFullStop } from '../errors.ts'
import { MINIMUM_FREE_BYTES } from '../pool/pool.ts'
import { imageOf, pathIfExists } from '../pool/pool-layout.ts'
import type { Staging, VolumeRecord } from '../pool/records.ts'
import type { Backend, Contents } from './backend.ts'
import { deviceBytesOf, devicesOf } from './loop-devices.ts'
import { createLoopNode } from './loop-node.ts'

export interface LoopBackendDeps {
  readonly host: Host
  readonly facts: HostFacts
  readonly pool: string
}

/** Smaller requests are almost certainly mistakes. */
const BLOCK_BYTES_MIN = 1_048_576

export function createLoopBackend(deps: LoopBackendDeps): Backend {
  const { facts } = deps
  return {
    name: 'loop',
    shortcomings: shortcomingsOf(facts),
    defaultFsType: facts.filesystems.xfs.yes || !facts.filesystems.ext4.yes ? 'xfs' : 'ext4',
    allocatesOnCreate: true,
    growsOnNode: true,
    canServe: ({ accessType, fsType }): Ability => (accessType === 'block' ? { yes: true } : facts.filesystems[fsType]),
    minimumBytes: ({ accessTypes, fsType }) => (accessTypes.includes('mount') ? minimumBytes(fsType) : BLOCK_BYTES_MIN),
    contents: createLoopContents(deps),
    node: createLoopNode(deps),
  }
}

function shortcomingsOf(facts: HostFacts): string[] {
  const list: string[] = []
  for (const type of Object.keys(facts.filesystems) as FilesystemType[]) {
    const ability = facts.filesystems[type]
    if (!ability.yes) list.push(`No volumes with ${type}: ${withFullStop(ability.because)}`)
  }
  if (!facts.canGrowExt4Online.yes) {
    list.push(
      `Volumes with ext4 grow when they are next staged, not while in use: ${withFullStop(facts.canGrowExt4Online.because)}`,
    )
  }
  if (!facts.canReflink.yes)
    list.push(`Snapshots and clones are full copies: ${withFullStop(facts.canReflink.because)}`)
  if (facts.limits.version === 'none') list.push(`Limits are not enforced: ${withFullStop(facts.limits.because)}`)
  return list
}

function createLoopContents({ host: { files, filesystems, loops }, pool }: LoopBackendDeps): Contents {
  const resize = async (volume: VolumeRecord, capacityBytes: number) => {
    const image = imageOf(pool, volume.id)
    const known = await files.sizes(image)
    const bytes = Math.max(deviceBytesOf(capacityBytes), known?.bytes ?? 0) // never shrink
    await (volume.provisioning === 'reserved' ? files.reserve(image, bytes) : files.extend(image, bytes))
  }

  /** A missing or truncated image is never recreated or extended: it would look like the volume, but without its data. */
  const damage = async ({ id, capacityBytes }: VolumeRecord) => {
    const image = imageOf(pool, id)
    const sizes = await files.sizes(image)
    if (!sizes) {
      return `Its file ${image} is gone from the pool. If the volume is in use, its data is still readable: copy it now. Otherwise restore the file from a backup, or delete the volume.`
    }
    return sizes.bytes < deviceBytesOf(capacityBytes) ? cutText(image, sizes.bytes, capacityBytes, 'volume') : undefined
  }

  const copy = (from: string, to: string) => files.copy(from, to, { keepFreeBytes: MINIMUM_FREE_BYTES })

  const copyAtOneMoment = async (from: string, to: string, staged: Staging | undefined) => {
    if (staged?.accessType === 'mount') return filesystems.whileFrozen(staged.path, () => copy(from, to))
    // Data written to a raw device may still be in the page cache.
    if (staged) for (const device of await devicesOf(loops, from)) await files.syncFile(device)
    return copy(from, to)
  }

  return {
    create: (volume) => resize(volume, volume.capacityBytes),

    async copy(source, volume, staged) {
      await copyAtOneMoment(imageOf(pool, source.id), imageOf(pool, volume.id), staged)
      await resize(volume, volume.capacityBytes)
    },

    async snapshot(volume, staged, snapshot) {
      const to = imageOf(pool, snapshot.id)
      await copyAtOneMoment(imageOf(pool, volume.id), to, staged)
      return { allocatedBytes: (await files.sizes(to))?.allocatedBytes ?? 0 }
    },

    async grow(volume, toBytes) {
      const harm = await damage(volume)
      if (harm) throw failedPrecondition(`Volume ${volume.id} cannot grow. ${harm}`)
      await resize(volume, toBytes)
      for (const device of await devicesOf(loops, imageOf(pool, volume.id))) await loops.refreshSize(device)
    },

    async removeVolume(id) {
      const image = imageOf(pool, id)
      for (const device of await devicesOf(loops, image)) await loops.detach(device, { file: image })
      await files.remove(`${image}.part`)
      await files.remove(image)
    },

    async removeSnapshot(id) {
      await files.remove(`${imageOf(pool, id)}.part`)
      await files.remove(imageOf(pool, id))
    },

    allocatedBytes: async (id) => (await files.sizes(imageOf(pool, id)))?.allocatedBytes ?? 0,

    find: (id) => pathIfExists(imageOf(pool, id)),

    damage,
    problem: damage,

    async snapshotDamage({ id, sizeBytes }) {
      const image = imageOf(pool, id)
      const sizes = await files.sizes(image)
      if (!sizes) return `Its file ${image} is gone from the pool. Restore it from a backup, or delete the snapshot.`
      return sizes.bytes < deviceBytesOf(sizeBytes) ? cutText(image, sizes.bytes, sizeBytes, 'snapshot') : undefined
    },
  }
}

const cutText = (image: string, bytes: number, recordedBytes: number, what: string) =>
  `Its file ${image} has ${sizeText(bytes)} of the ${sizeText(recordedBytes)} it was created with: it was truncated, and the rest is lost. Restore it from a backup, or delete the ${what}.`
