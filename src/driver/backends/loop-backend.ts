// A backend with image files in the pool as volumes. A staged volume is attached as a loop device. loop-node.ts has the
// operations on the node.
import type { Ability, FilesystemType, Host } from '../../host/host.ts'
import { type HostFacts, minimumBytes } from '../../host/index.ts'
import { failedPrecondition, formatSize, withFullStop } from '../errors.ts'
import { MINIMUM_FREE_BYTES } from '../pool/pool.ts'
import { imagePathOf, pathIfExists } from '../pool/pool-layout.ts'
import type { Staging, VolumeRecord } from '../pool/records.ts'
import type { Backend, Contents } from './backend.ts'
import { deviceBytesOf, findDevices } from './loop-devices.ts'
import { createLoopNode } from './loop-node.ts'

export interface LoopBackendDeps {
  readonly host: Host
  readonly facts: HostFacts
  readonly pool: string
}

/** The size of a block volume is at least this. */
const BLOCK_BYTES_MIN = 1_048_576

export function createLoopBackend(deps: LoopBackendDeps): Backend {
  const { facts } = deps
  return {
    name: 'loop',
    limitations: listLimitations(facts),
    defaultFsType: facts.filesystems.xfs.available || !facts.filesystems.ext4.available ? 'xfs' : 'ext4',
    allocatesOnCreate: true,
    growsOnNode: true,
    checkSupport: ({ accessType, fsType }): Ability =>
      accessType === 'block' ? { available: true } : facts.filesystems[fsType],
    minimumBytes: ({ accessTypes, fsType }) => (accessTypes.includes('mount') ? minimumBytes(fsType) : BLOCK_BYTES_MIN),
    contents: createLoopContents(deps),
    node: createLoopNode(deps),
  }
}

function listLimitations(facts: HostFacts): string[] {
  const limitations: string[] = []
  for (const type of Object.keys(facts.filesystems) as FilesystemType[]) {
    const ability = facts.filesystems[type]
    if (!ability.available) limitations.push(`No volumes with ${type}: ${withFullStop(ability.message)}`)
  }
  if (!facts.canGrowExt4Online.available) {
    limitations.push(
      `Volumes with ext4 grow when they are next staged, not while in use: ${withFullStop(facts.canGrowExt4Online.message)}`,
    )
  }
  if (!facts.canReflink.available)
    limitations.push(`Snapshots and clones are full copies: ${withFullStop(facts.canReflink.message)}`)
  if (facts.limits.version === 'none')
    limitations.push(`Limits are not enforced: ${withFullStop(facts.limits.message)}`)
  return limitations
}

function createLoopContents({ host: { files, filesystems, loops }, pool }: LoopBackendDeps): Contents {
  const resize = async (volume: VolumeRecord, capacityBytes: number) => {
    const image = imagePathOf(pool, volume.id)
    const currentSizes = await files.sizes(image)
    const bytes = Math.max(deviceBytesOf(capacityBytes), currentSizes?.bytes ?? 0) // never shrink
    await (volume.provisioning === 'reserved' ? files.reserve(image, bytes) : files.extend(image, bytes))
  }

  const findDamage = async ({ id, capacityBytes }: VolumeRecord) => {
    const image = imagePathOf(pool, id)
    const sizes = await files.sizes(image)
    if (!sizes) {
      return `The file ${image} of the volume is missing in the pool. If the volume is in use, its data is still readable: copy it now. Otherwise restore the file from a backup, or delete the volume.`
    }
    return sizes.bytes < deviceBytesOf(capacityBytes)
      ? truncationMessage(image, sizes.bytes, capacityBytes, 'volume')
      : undefined
  }

  const copy = (sourceImage: string, targetImage: string) =>
    files.copy(sourceImage, targetImage, { keepFreeBytes: MINIMUM_FREE_BYTES })

  const copyConsistently = async (sourceImage: string, targetImage: string, staging: Staging | undefined) => {
    if (staging?.accessType === 'mount')
      return filesystems.whileFrozen(staging.path, () => copy(sourceImage, targetImage))
    // Data written to a raw device may still be in the page cache.
    if (staging) for (const device of await findDevices(loops, sourceImage)) await files.syncFile(device)
    return copy(sourceImage, targetImage)
  }

  return {
    create: (volume) => resize(volume, volume.capacityBytes),

    async copy(source, volume, staging) {
      await copyConsistently(imagePathOf(pool, source.id), imagePathOf(pool, volume.id), staging)
      await resize(volume, volume.capacityBytes)
    },

    async snapshot(volume, staging, snapshot) {
      const targetImage = imagePathOf(pool, snapshot.id)
      await copyConsistently(imagePathOf(pool, volume.id), targetImage, staging)
      return { allocatedBytes: (await files.sizes(targetImage))?.allocatedBytes ?? 0 }
    },

    async grow(volume, toBytes) {
      const damage = await findDamage(volume)
      if (damage) throw failedPrecondition(`Volume ${volume.id} cannot grow. ${damage}`)
      await resize(volume, toBytes)
      for (const device of await findDevices(loops, imagePathOf(pool, volume.id))) await loops.refreshSize(device)
    },

    async removeVolume(id) {
      const image = imagePathOf(pool, id)
      for (const device of await findDevices(loops, image)) await loops.detach(device, { file: image })
      await files.remove(`${image}.part`)
      await files.remove(image)
    },

    async removeSnapshot(id) {
      await files.remove(`${imagePathOf(pool, id)}.part`)
      await files.remove(imagePathOf(pool, id))
    },

    allocatedBytes: async (id) => (await files.sizes(imagePathOf(pool, id)))?.allocatedBytes ?? 0,

    find: (id) => pathIfExists(imagePathOf(pool, id)),

    findDamage,
    findProblem: findDamage,

    async findSnapshotDamage({ id, sizeBytes }) {
      const image = imagePathOf(pool, id)
      const sizes = await files.sizes(image)
      if (!sizes)
        return `The file ${image} of the snapshot is missing in the pool. Restore it from a backup, or delete the snapshot.`
      return sizes.bytes < deviceBytesOf(sizeBytes)
        ? truncationMessage(image, sizes.bytes, sizeBytes, 'snapshot')
        : undefined
    },
  }
}

const truncationMessage = (image: string, bytes: number, recordedBytes: number, kind: string) =>
  `The file ${image} of the ${kind} has ${formatSize(bytes)} of the recorded ${formatSize(recordedBytes)}: it was truncated, and the rest is lost. Restore it from a backup, or copy the data that is left and delete the ${kind}.`
