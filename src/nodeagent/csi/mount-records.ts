// The mount records: which volumes are staged and published on this node, and for which pods. They are stored in
// vol_data.json files and loaded once at start. A record is written before the driver is called and removed after the
// unmount, so that after a crash every mounted volume has a record.
//
//   publication   one volume for one pod       pods/<uid>/volumes/kubernetes.io~csi/<volume>/
//   staging       one volume for the node      plugins/kubernetes.io/csi/<driver>/<sha256>/; removed with the last
//                                              publication of its volume
//   block volume  one record for both          plugins/kubernetes.io/csi/volumeDevices/<volume>/data/
import { join } from 'node:path'
import type { Logger } from '../../base/log.ts'
import type { NodeDisk } from '../disk/disk.ts'
import { type AgentPaths, VOL_DATA } from '../paths.ts'
import { formatVolData, parseVolData, type VolData } from '../vol-data.ts'

export type VolumeMode = 'Filesystem' | 'Block'

/** Identifies a volume by its driver and handle. */
export interface VolumeIdentity {
  readonly driver: string
  readonly handle: string
}

export interface Staging extends VolumeIdentity {
  readonly mode: VolumeMode
  /** The staging_target_path. */
  readonly path: string
}

export interface Publication extends VolumeIdentity {
  /** The UID of the pod. */
  readonly uid: string
  /** The name of the PV, or of the inline volume in the pod. */
  readonly volumeName: string
  readonly mode: VolumeMode
  /** Whether this is a CSI ephemeral inline volume, which is neither attached nor staged. */
  readonly isInline: boolean
  readonly attachmentId: string
  /** The target_path. */
  readonly target: string
}

export interface MountRecords {
  load(): Promise<void>
  /** Returns the UIDs of pods with records or directories on this node. */
  uids(): string[]
  publicationsOfPod(uid: string): Publication[]
  publicationsOfVolume(volume: VolumeIdentity): Publication[]
  publication(uid: string, volume: string): Publication | undefined
  stagingOf(volume: VolumeIdentity): Staging | undefined
  stagings(): Staging[]
  /** Must be called before the driver publishes the volume. */
  recordPublication(publication: Publication): Promise<void>
  /** Must be called before the driver stages the volume. */
  recordStaging(staging: Staging): Promise<void>
  /** Must be called after the unmount. Throws and removes nothing if the target is mounted or is a directory with files. */
  removePublication(publication: Publication): Promise<void>
  removeStaging(staging: Staging): Promise<void>
}

export const volumeKey = ({ driver, handle }: VolumeIdentity): string => `${driver}^${handle}`

const DIRECTORY_MODE = 0o750
/** The entries of volumeDevices/ that are not volumes. */
const DEVICE_DIRECTORIES: readonly string[] = ['staging', 'publish']

export interface MountRecordsDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly nodeName: string
  readonly log: Logger
}

export function createMountRecords({ disk, paths, nodeName, log }: MountRecordsDeps): MountRecords {
  const pods = new Map<string, Map<string, Publication>>()
  const publicationsByVolume = new Map<string, Set<Publication>>()
  const stagings = new Map<string, Staging>()

  const addToIndex = (publication: Publication) => {
    removeFromIndex(pods.get(publication.uid)?.get(publication.volumeName))
    const ofPod = pods.get(publication.uid) ?? new Map()
    pods.set(publication.uid, ofPod.set(publication.volumeName, publication))
    const key = volumeKey(publication)
    publicationsByVolume.set(key, (publicationsByVolume.get(key) ?? new Set()).add(publication))
  }
  const removeFromIndex = (publication: Publication | undefined) => {
    if (!publication) return
    pods.get(publication.uid)?.delete(publication.volumeName)
    if (pods.get(publication.uid)?.size === 0) pods.delete(publication.uid)
    const key = volumeKey(publication)
    publicationsByVolume.get(key)?.delete(publication)
    if (publicationsByVolume.get(key)?.size === 0) publicationsByVolume.delete(key)
  }

  /** Reads a record. Removes an empty directory without a record, which a crash can leave behind. */
  async function readVolData(directory: string, mountName?: string): Promise<VolData | undefined> {
    const path = join(directory, VOL_DATA)
    let text: string | undefined
    try {
      text = await disk.readText(path)
    } catch (error) {
      log.error({ path, reason: (error as Error).message }, 'cannot read this mount record; its volume is not changed')
      return undefined
    }
    // A power loss can leave an empty record. It also ends all mounts.
    const isEmpty = text === '' && !(mountName && (await disk.isMountPoint(join(directory, mountName))))
    if (isEmpty) await disk.removeFile(path)
    if (text === undefined || isEmpty) {
      if (mountName) await disk.removeEmptyDirectory(join(directory, mountName))
      await disk.removeEmptyDirectory(directory)
      return undefined
    }
    const data = parseVolData(text)
    if (!data) log.error({ path }, 'cannot parse this mount record; its volume is not changed')
    return data
  }

  async function loadPod(uid: string): Promise<void> {
    pods.set(uid, pods.get(uid) ?? new Map()) // even without volumes, because its directory must be removed
    for (const volume of await disk.list(paths.csiVolumes(uid))) {
      const data = await readVolData(paths.csiVolume(uid, volume), 'mount')
      if (data) addToIndex(publicationOf(uid, volume, 'Filesystem', data))
    }
    for (const volume of await disk.list(paths.blockLinks(uid))) {
      const data = await readVolData(paths.blockData(volume))
      if (data) addToIndex(publicationOf(uid, volume, 'Block', data))
      else if ((await disk.kindOfTarget(paths.blockLink(uid, volume))) === undefined) {
        await disk.removeFile(paths.blockLink(uid, volume)) // a dangling link
      }
    }
  }

  const publicationOf = (uid: string, volume: string, mode: VolumeMode, data: VolData): Publication => ({
    uid,
    volumeName: volume,
    mode,
    driver: data.driverName,
    handle: data.volumeHandle,
    isInline: data.volumeLifecycleMode === 'Ephemeral',
    attachmentId: data.attachmentID ?? '',
    target: mode === 'Block' ? paths.blockTarget(uid, volume) : join(paths.csiVolume(uid, volume), 'mount'),
  })

  async function loadStagings(): Promise<void> {
    for (const driver of await disk.list(paths.csi)) {
      if (join(paths.csi, driver) === paths.devices) continue
      for (const digest of await disk.list(join(paths.csi, driver))) {
        const data = await readVolData(join(paths.csi, driver, digest), 'globalmount')
        if (!data) continue
        const identity = { driver: data.driverName, handle: data.volumeHandle }
        const path = join(paths.csi, driver, digest, 'globalmount')
        stagings.set(volumeKey(identity), { ...identity, mode: 'Filesystem', path })
      }
    }
    for (const kind of DEVICE_DIRECTORIES) {
      for (const volume of await disk.list(join(paths.devices, kind))) {
        const hasRecord = (await disk.kindOf(join(paths.blockData(volume), VOL_DATA))) !== undefined
        if (!hasRecord) await disk.removeEmptyDirectory(join(paths.devices, kind, volume))
      }
    }
    for (const volume of await disk.list(paths.devices)) {
      const data = DEVICE_DIRECTORIES.includes(volume) ? undefined : await readVolData(paths.blockData(volume))
      if (!data && !DEVICE_DIRECTORIES.includes(volume)) await disk.removeEmptyDirectory(join(paths.devices, volume))
      if (!data) continue
      const identity = { driver: data.driverName, handle: data.volumeHandle }
      stagings.set(volumeKey(identity), { ...identity, mode: 'Block', path: paths.blockStaging(volume) })
    }
  }

  const volDataOf = ({ volumeName, driver, handle, isInline, attachmentId }: Publication): VolData => ({
    volumeHandle: handle,
    driverName: driver,
    specVolID: volumeName,
    nodeName,
    attachmentID: attachmentId,
    volumeLifecycleMode: isInline ? 'Ephemeral' : 'Persistent',
  })

  async function removeDirectory(path: string): Promise<void> {
    if (await disk.isMountPoint(path)) throw new Error(`${path} is still mounted, so it was not removed`)
    if ((await disk.kindOf(path)) === 'directory' && !(await disk.removeEmptyDirectory(path))) {
      throw new Error(`${path} is not mounted, but not empty, so it was not removed. Check its contents`)
    }
  }

  return {
    async load() {
      for (const uid of await disk.list(paths.pods)) await loadPod(uid)
      await loadStagings()
    },
    uids: () => [...pods.keys()],
    publicationsOfPod: (uid) => [...(pods.get(uid)?.values() ?? [])],
    publicationsOfVolume: (volume) => [...(publicationsByVolume.get(volumeKey(volume)) ?? [])],
    publication: (uid, volume) => pods.get(uid)?.get(volume),
    stagingOf: (volume) => stagings.get(volumeKey(volume)),
    stagings: () => [...stagings.values()],

    async recordPublication(publication) {
      const { uid, volumeName, mode } = publication
      const data = formatVolData(volDataOf(publication))
      if (mode === 'Filesystem') {
        await disk.makeDirectory(paths.csiVolume(uid, volumeName), DIRECTORY_MODE)
        await disk.writeText(join(paths.csiVolume(uid, volumeName), VOL_DATA), data)
      } else {
        await disk.makeDirectory(paths.blockPublish(volumeName), DIRECTORY_MODE)
        await disk.makeDirectory(paths.blockData(volumeName), DIRECTORY_MODE)
        await disk.writeText(join(paths.blockData(volumeName), VOL_DATA), data)
        await disk.makeDirectory(paths.blockLinks(uid), DIRECTORY_MODE)
        await disk.link(publication.target, paths.blockLink(uid, volumeName))
      }
      addToIndex(publication)
    },

    async recordStaging(staging) {
      await disk.makeDirectory(staging.path, DIRECTORY_MODE)
      if (staging.mode === 'Filesystem') {
        const data = { volumeHandle: staging.handle, driverName: staging.driver }
        await disk.writeText(join(staging.path, '..', VOL_DATA), formatVolData(data))
      }
      stagings.set(volumeKey(staging), staging)
    },

    async removePublication(publication) {
      const { uid, volumeName, mode, target } = publication
      if (mode === 'Filesystem') {
        await removeDirectory(target)
        await disk.removeFile(join(paths.csiVolume(uid, volumeName), VOL_DATA))
        await removeDirectory(paths.csiVolume(uid, volumeName))
      } else {
        if (await disk.isMountPoint(target)) throw new Error(`${target} is still mounted, so it was not removed`)
        await disk.removeFile(paths.blockLink(uid, volumeName))
        const isLast = [...(publicationsByVolume.get(volumeKey(publication)) ?? [])].every(
          (otherPublication) => otherPublication === publication,
        )
        if (isLast) {
          await disk.removeFile(join(paths.blockData(volumeName), VOL_DATA))
          for (const path of [
            paths.blockData(volumeName),
            join(paths.blockData(volumeName), '..'),
            paths.blockPublish(volumeName),
          ]) {
            await disk.removeEmptyDirectory(path)
          }
        }
      }
      removeFromIndex(publication)
    },

    async removeStaging(staging) {
      await removeDirectory(staging.path)
      if (staging.mode === 'Filesystem') {
        const directory = join(staging.path, '..')
        await disk.removeFile(join(directory, VOL_DATA))
        await disk.removeEmptyDirectory(directory)
      }
      stagings.delete(volumeKey(staging))
    },
  }
}
