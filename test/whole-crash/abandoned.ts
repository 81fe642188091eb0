// Tracks storage that users abandoned: they deleted the PersistentVolume while its policy was Retain, or while no
// provisioner had its finalizer on it. Such storage is not a leak.

import type { ClaimsAndVolumes } from '../../src/sim/checkers/bindings.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../src/volumes/names.ts'
import type { Volume } from './assets.ts'
import { assetOf } from './assets.ts'

export interface Abandoned {
  /** A user deletes this volume. */
  deletedByHand(volume: Volume): void
  /** Storage that existed before, without a PersistentVolume so far. */
  imported(asset: string): void
  has(asset: string): boolean
}

export function followAbandoned(view: ClaimsAndVolumes): Abandoned {
  /** Uids of volumes that a user deleted, and of those that no provisioner held at some time since. */
  const byHand = new Set<string>()
  const released = new Set<string>()
  const assets = new Set<string>()

  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of !== 'volume') continue
      const volume = (next ?? old) as Volume
      const { uid = '', deletionTimestamp } = volume.metadata
      const asset = assetOf(volume)
      if (next && asset) assets.delete(asset)
      if (!byHand.has(uid)) continue
      if ((deletionTimestamp || !next) && !isHeldToDelete(volume, !next)) released.add(uid)
      if (!next && released.has(uid) && asset) assets.add(asset)
    }
  })

  return {
    deletedByHand: ({ metadata: { uid = '' } }) => void byHand.add(uid),
    imported: (asset) => void assets.add(asset),
    has: (asset) => assets.has(asset),
  }
}

/** The last state of a deleted object may have lost its finalizers in the same commit. */
const isHeldToDelete = ({ metadata: { finalizers = [], deletionTimestamp }, spec }: Volume, isGone: boolean) =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' &&
  ((isGone && deletionTimestamp !== undefined) ||
    finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER) ||
    finalizers.includes(IN_PROCESS_PROVISIONER_FINALIZER))
