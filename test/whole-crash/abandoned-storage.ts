// Tracks storage without a PersistentVolume that is not a leak, because no provisioner had to delete it.

import type { ClaimsAndVolumes } from '../../src/sim/checkers/bindings.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../src/volumes/names.ts'
import type { Volume } from './assets.ts'
import { assetOf } from './assets.ts'

export interface AbandonedStorage {
  /** Records that a user deletes this volume. */
  recordUserDeletion(volume: Volume): void
  /** Records storage that was created outside the cluster and has no PersistentVolume yet. */
  recordImport(asset: string): void
  has(asset: string): boolean
}

export function trackAbandonedStorage(view: ClaimsAndVolumes): AbandonedStorage {
  /** Uids of volumes that a user deleted. */
  const deletedByUser = new Set<string>()
  /** Uids of those volumes that, at some time after the deletion, no provisioner had to delete. */
  const releasedUids = new Set<string>()
  const assets = new Set<string>()

  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of !== 'volume') continue
      const volume = (next ?? old) as Volume
      const { uid = '', deletionTimestamp } = volume.metadata
      const asset = assetOf(volume)
      if (next && asset) assets.delete(asset)
      if (!deletedByUser.has(uid)) continue
      if ((deletionTimestamp || !next) && !isDeletedByProvisioner(volume, !next)) releasedUids.add(uid)
      if (!next && releasedUids.has(uid) && asset) assets.add(asset)
    }
  })

  return {
    recordUserDeletion: ({ metadata: { uid = '' } }) => void deletedByUser.add(uid),
    recordImport: (asset) => void assets.add(asset),
    has: (asset) => assets.has(asset),
  }
}

/** Whether a provisioner must delete the storage. A deleted object may have lost its finalizers in its last commit. */
const isDeletedByProvisioner = (
  { metadata: { finalizers = [], deletionTimestamp }, spec }: Volume,
  isDeleted: boolean,
) =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' &&
  ((isDeleted && deletionTimestamp !== undefined) ||
    finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER) ||
    finalizers.includes(IN_PROCESS_PROVISIONER_FINALIZER))
