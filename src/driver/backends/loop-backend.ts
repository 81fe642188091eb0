// Volumes as files in the pool, each attached as a loop device of its own: with its own file system or as a raw device,
// with its own size, its own limits and its own counters. The steps on the node are loop-node.ts.

import type { Ability, FilesystemType, Host } from '../../host/host.ts'
import { type HostFacts, minimumBytes } from '../../host/index.ts'
import { notNow, sizeText, stopped } from '../errors.ts'
import { KEPT_FREE_BYTES } from '../pool/pool.ts'
import { ifThere, imageOf } from '../pool/pool-layout.ts'
import type { Staging, VolumeRecord } from '../pool/records.ts'
import type { Backend, Contents } from './backend.ts'
import { createLoopNode, devicesOver } from './loop-node.ts'

export interface LoopBackendDeps {
  readonly host: Host
  readonly facts: HostFacts
  readonly pool: string
}

/** Devices end where a page ends; the promise itself is kept to the byte. */
export const DEVICE_BYTES_UNIT = 4_096
export const deviceBytesOf = (capacityBytes: number): number =>
  Math.ceil(capacityBytes / DEVICE_BYTES_UNIT) * DEVICE_BYTES_UNIT

/** A device needs no more than one unit; less than this is a mistake of whoever asks. */
const BLOCK_BYTES_MIN = 1_048_576

export function createLoopBackend(deps: LoopBackendDeps): Backend {
  const { facts } = deps
  return {
    name: 'loop',
    shortcomings: shortcomingsOf(facts),
    defaultFsType: facts.filesystems.xfs.yes || !facts.filesystems.ext4.yes ? 'xfs' : 'ext4',
    takesSpaceAtOnce: true,
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
    if (!ability.yes) list.push(`No volumes with ${type}: ${stopped(ability.because)}`)
  }
  if (!facts.canGrowExt4Online.yes) {
    list.push(
      `Volumes with ext4 grow when they are next staged, not while in use: ${stopped(facts.canGrowExt4Online.because)}`,
    )
  }
  if (!facts.canReflink.yes) list.push(`Snapshots and clones are full copies: ${stopped(facts.canReflink.because)}`)
  if (facts.limits.version === 'none') list.push(`Limits are not enforced: ${stopped(facts.limits.because)}`)
  return list
}

function createLoopContents({ host: { files, filesystems, loops }, pool }: LoopBackendDeps): Contents {
  const resize = async (volume: VolumeRecord, capacityBytes: number) => {
    const image = imageOf(pool, volume.id)
    const known = await files.sizes(image)
    const bytes = Math.max(deviceBytesOf(capacityBytes), known?.bytes ?? 0) // never shorter, whatever it was before
    await (volume.provisioning === 'reserved' ? files.reserve(image, bytes) : files.extend(image, bytes))
  }

  /** A file that is gone or cut is never made longer or anew: that would look like the volume, without its data. */
  const damage = async ({ id, capacityBytes }: VolumeRecord) => {
    const image = imageOf(pool, id)
    const sizes = await files.sizes(image)
    if (!sizes) {
      return `Its file ${image} is gone from the pool. If the volume is in use its data is still readable: copy it now. Otherwise restore the file from a backup, or delete the volume.`
    }
    return sizes.bytes < deviceBytesOf(capacityBytes) ? cutText(image, sizes.bytes, capacityBytes, 'volume') : undefined
  }

  const copy = (from: string, to: string) => files.copy(from, to, { keepFreeBytes: KEPT_FREE_BYTES })

  const copyAtOneMoment = async (from: string, to: string, staged: Staging | undefined) => {
    if (staged?.accessType === 'mount') return filesystems.whileFrozen(staged.path, () => copy(from, to))
    // What was written to a raw device may still be in memory.
    if (staged) for (const device of await devicesOver(loops, from)) await files.syncFile(device)
    return copy(from, to)
  }

  return {
    make: (volume) => resize(volume, volume.capacityBytes),

    async copy(source, volume, staged) {
      await copyAtOneMoment(imageOf(pool, source.id), imageOf(pool, volume.id), staged)
      await resize(volume, volume.capacityBytes)
    },

    async cut(volume, staged, snapshot) {
      const to = imageOf(pool, snapshot.id)
      await copyAtOneMoment(imageOf(pool, volume.id), to, staged)
      return { allocatedBytes: (await files.sizes(to))?.allocatedBytes ?? 0 }
    },

    async grow(volume, toBytes) {
      const harm = await damage(volume)
      if (harm) throw notNow(`Volume ${volume.id} cannot grow. ${harm}`)
      await resize(volume, toBytes)
      for (const device of await devicesOver(loops, imageOf(pool, volume.id))) await loops.refreshSize(device)
    },

    async removeVolume(id) {
      const image = imageOf(pool, id)
      for (const device of await devicesOver(loops, image)) await loops.detach(device, { file: image })
      await files.remove(`${image}.part`)
      await files.remove(image)
    },

    async removeSnapshot(id) {
      await files.remove(`${imageOf(pool, id)}.part`)
      await files.remove(imageOf(pool, id))
    },

    allocatedBytes: async (id) => (await files.sizes(imageOf(pool, id)))?.allocatedBytes ?? 0,

    find: (id) => ifThere(imageOf(pool, id)),

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
  `Its file ${image} has ${sizeText(bytes)} of the ${sizeText(recordedBytes)} it was made with: it was cut, and the rest is lost. Restore it from a backup, or delete the ${what}.`
