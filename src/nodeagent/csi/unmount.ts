// Takes one CSI volume from one pod: unpublished, and with its last user unstaged, then forgotten. In this order, so that
// whatever a crash leaves is still on record. Only the driver unmounts; the agent removes directories that are empty.
import { CsiError } from '../../csi/index.ts'
import { type Publication, type Staging, volumeKey } from './books.ts'
import { CALL_TIMEOUT_MS, type MountDeps, publicationKey } from './mount.ts'

export type UnmountDeps = Pick<MountDeps, 'drivers' | 'books' | 'disk' | 'inUse' | 'metrics' | 'lock' | 'done'>

/** Throws a sentence that names the volume. */
export async function unmountCsiVolume(
  publication: Publication,
  deps: UnmountDeps,
  signal: AbortSignal,
): Promise<void> {
  await deps.lock(volumeKey(publication), async () => {
    const { books, done } = deps
    await unpublish(publication, deps, signal)
    done.published.delete(publicationKey(publication))
    const isLast = books.ofVolume(publication).every((other) => other === publication)
    const staging = books.stagingOf(publication)
    if (isLast && staging) await unstage(staging, deps, signal)
    if (isLast) await deps.inUse.remove(publication)
    await books.erasePublication(publication)
    done.neverPublished.delete(publicationKey(publication))
  })
}

/** What was staged for nobody: the record of its pod is gone. */
export async function unstageOrphan(staging: Staging, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  await deps.lock(volumeKey(staging), async () => {
    if (deps.books.ofVolume(staging).length > 0 || deps.books.stagingOf(staging) !== staging) return
    await unstage(staging, deps, signal)
    await deps.inUse.remove(staging)
  })
}

async function unpublish(publication: Publication, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  const { drivers, disk, metrics, done } = deps
  if (done.neverPublished.has(publicationKey(publication))) return // it was never asked for, or refused for good
  const { handle, target, volume, driver: name } = publication
  const driver = drivers.get(name)
  const failed = (because: string) => new Error(`UnmountVolume.TearDown failed for volume "${volume}" : ${because}`)
  if (!driver)
    throw failed(`driver name ${name} not found in the list of registered CSI drivers. Start it on this node`)
  const operation = publication.mode === 'Block' ? 'unmap_volume' : 'volume_unmount'
  try {
    await metrics.during(name, operation, () =>
      driver.csi.node.nodeUnpublishVolume(
        { volumeId: handle, targetPath: target },
        { timeoutMs: CALL_TIMEOUT_MS, signal },
      ),
    )
  } catch (error) {
    if (isGone(error) && !(await disk.isMountPoint(target))) return
    throw failed(textOf(error))
  }
}

async function unstage(staging: Staging, deps: UnmountDeps, signal: AbortSignal): Promise<void> {
  const { drivers, books, disk, metrics, done } = deps
  const { driver: name, handle, path, mode } = staging
  const driver = drivers.get(name)
  const failed = (because: string) => new Error(`UnmountDevice failed for volume "${handle}" : ${because}`)
  if (!driver)
    throw failed(`driver name ${name} not found in the list of registered CSI drivers. Start it on this node`)
  done.staged.delete(volumeKey(staging)) // from here on nobody may rely on it
  // A block volume has one record for both steps, also where its driver knows only one of them.
  if (!driver.can.has('STAGE_UNSTAGE_VOLUME')) return books.eraseStaging(staging)
  try {
    await metrics.during(name, mode === 'Block' ? 'unmap_device' : 'unmount_device', () =>
      driver.csi.node.nodeUnstageVolume(
        { volumeId: handle, stagingTargetPath: path },
        { timeoutMs: CALL_TIMEOUT_MS, signal },
      ),
    )
  } catch (error) {
    if (!isGone(error) || (await disk.isMountPoint(path))) throw failed(textOf(error))
  }
  await books.eraseStaging(staging)
}

/** The driver knows no such volume: someone deleted it under us. Where nothing is mounted there is nothing to undo. */
const isGone = (error: unknown) => error instanceof CsiError && error.codeName === 'NOT_FOUND'

const textOf = (error: unknown) => (error instanceof CsiError ? error.rpcText : (error as Error).message)
