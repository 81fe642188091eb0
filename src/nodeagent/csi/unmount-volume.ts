// Unmounts a CSI volume of a pod: unpublishes it, unstages it with its last pod, then removes the records. The records are
// removed last, so that they include every mount that a crash leaves behind. Only empty directories are removed.
import { CsiError } from '../../csi/index.ts'
import { type Publication, type Staging, volumeKey } from './mount-records.ts'
import { CALL_TIMEOUT_MS, type MountDeps, publicationKey } from './mount-volume.ts'

export type UnmountDeps = Pick<
  MountDeps,
  'drivers' | 'records' | 'disk' | 'volumesInUse' | 'metrics' | 'lock' | 'completedSteps'
>

/** Throws an error that names the volume. */
export async function unmountCsiVolume(
  publication: Publication,
  deps: UnmountDeps,
  signal: AbortSignal,
): Promise<void> {
  await deps.lock(volumeKey(publication), async () => {
    const { records, completedSteps } = deps
    await unpublish(publication, deps, signal)
    completedSteps.published.delete(publicationKey(publication))
    const isLast = records
      .publicationsOfVolume(publication)
      .every((otherPublication) => otherPublication === publication)
    const staging = records.stagingOf(publication)
    if (isLast && staging) await unstage(staging, deps, signal)
    if (isLast) await deps.volumesInUse.remove(publication)
    await records.removePublication(publication)
    completedSteps.neverPublished.delete(publicationKey(publication))
  })
}

/** Unstages a volume without publications. */
export async function unstageOrphan(staging: Staging, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  await deps.lock(volumeKey(staging), async () => {
    if (deps.records.publicationsOfVolume(staging).length > 0 || deps.records.stagingOf(staging) !== staging) return
    await unstage(staging, deps, signal)
    await deps.volumesInUse.remove(staging)
  })
}

async function unpublish(publication: Publication, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  const { drivers, disk, metrics, completedSteps } = deps
  if (completedSteps.neverPublished.has(publicationKey(publication))) return // never called, or rejected with a final error
  const { handle, target, volumeName, driver: name } = publication
  const driver = drivers.get(name)
  const unmountError = (message: string) =>
    new Error(`UnmountVolume.TearDown failed for volume "${volumeName}" : ${message}`)
  if (!driver)
    throw unmountError(
      `driver name ${name} not found in the list of registered CSI drivers. Start the driver on this node`,
    )
  const operation = publication.mode === 'Block' ? 'unmap_volume' : 'volume_unmount'
  try {
    await metrics.measure(name, operation, () =>
      driver.csi.node.nodeUnpublishVolume(
        { volumeId: handle, targetPath: target },
        { timeoutMs: CALL_TIMEOUT_MS, signal },
      ),
    )
  } catch (error) {
    if (isVolumeNotFound(error) && !(await disk.isMountPoint(target))) return
    throw unmountError(messageOf(error))
  }
}

async function unstage(staging: Staging, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  const { drivers, records, disk, metrics, completedSteps } = deps
  const { driver: name, handle, path, mode } = staging
  const driver = drivers.get(name)
  const unmountError = (message: string) => new Error(`UnmountDevice failed for volume "${handle}" : ${message}`)
  if (!driver)
    throw unmountError(
      `driver name ${name} not found in the list of registered CSI drivers. Start the driver on this node`,
    )
  completedSteps.staged.delete(volumeKey(staging))
  // A block volume has one record for staging and publication, even if its driver does not support staging.
  if (!driver.capabilities.has('STAGE_UNSTAGE_VOLUME')) return records.removeStaging(staging)
  try {
    await metrics.measure(name, mode === 'Block' ? 'unmap_device' : 'unmount_device', () =>
      driver.csi.node.nodeUnstageVolume(
        { volumeId: handle, stagingTargetPath: path },
        { timeoutMs: CALL_TIMEOUT_MS, signal },
      ),
    )
  } catch (error) {
    if (!isVolumeNotFound(error) || (await disk.isMountPoint(path))) throw unmountError(messageOf(error))
  }
  await records.removeStaging(staging)
}

/** Returns whether the driver has deleted the volume. If it is not mounted either, there is nothing to undo. */
const isVolumeNotFound = (error: unknown) => error instanceof CsiError && error.codeName === 'NOT_FOUND'

const messageOf = (error: unknown) => (error instanceof CsiError ? error.rpcText : (error as Error).message)
