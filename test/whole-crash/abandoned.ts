// Storage that people gave up: they deleted the volume object while its policy said that the data stays, or while no
// provisioner held it. Whatever is behind such a volume is theirs, and no leak.

import type { ClaimsAndVolumes } from '../../src/sim/checkers/bindings.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../src/volumes/names.ts'
import type { Volume } from './assets.ts'
import { assetOf } from './assets.ts'

export interface Abandoned {
  /** A person asks for this volume to be deleted. */
  deletedByHand(volume: Volume): void
  /** Storage that was there before us, which nobody has yet made a volume for. */
  imported(asset: string): void
  has(asset: string): boolean
}

export function followAbandoned(view: ClaimsAndVolumes): Abandoned {
  /** By uid: those deleted by hand, and of these those that were let go of at some time since. */
  const byHand = new Set<string>()
  const letGo = new Set<string>()
  const assets = new Set<string>()

  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of !== 'volume') continue
      const volume = (next ?? old) as Volume
      const { uid = '', deletionTimestamp } = volume.metadata
      const asset = assetOf(volume)
      if (next && asset) assets.delete(asset)
      if (!byHand.has(uid)) continue
      if ((deletionTimestamp || !next) && !isHeldToDelete(volume, !next)) letGo.add(uid)
      if (!next && letGo.has(uid) && asset) assets.add(asset)
    }
  })

  return {
    deletedByHand: ({ metadata: { uid = '' } }) => void byHand.add(uid),
    imported: (asset) => void assets.add(asset),
    has: (asset) => assets.has(asset),
  }
}

/** The last state of an object that is gone may have lost its finalizers in the very commit that ended it. */
const isHeldToDelete = ({ metadata: { finalizers = [], deletionTimestamp }, spec }: Volume, isGone: boolean) =>
  spec?.persistentVolumeReclaimPolicy === 'Delete' &&
  ((isGone && deletionTimestamp !== undefined) ||
    finalizers.includes(EXTERNAL_PROVISIONER_FINALIZER) ||
    finalizers.includes(IN_PROCESS_PROVISIONER_FINALIZER))
