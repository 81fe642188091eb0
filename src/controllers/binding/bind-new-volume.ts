// Plans the binding of a newly provisioned volume to its claim in the same commit that creates the volume. This saves a
// transaction and a round of watch events. Pure. The binder handles all cases that are not covered here.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { CommitWrite } from '../../client/index.ts'
import { mismatchReason } from '../../volumes/choose-volume.ts'
import { type Claim, candidateOf, isReservedFor, requirementsOf, type Volume } from '../../volumes/matching.ts'
import { bindingWrites } from './bind-claim.ts'
import { isBindCompleted } from './plan-claim.ts'

export interface NewVolumeBindingOptions {
  /** A finalizer to remove from the claim in the same commit. */
  readonly finalizerToRemove: string
  /** The feature gate VolumeAttributesClass. */
  readonly isAttributesClassEnabled: boolean
}

/** Returns the writes to commit after the create of the volume, or undefined if the binder must perform the binding. */
export function planBindingOfNewVolume(
  newVolume: Readonly<PersistentVolume>,
  claim: Claim,
  { finalizerToRemove, isAttributesClassEnabled }: NewVolumeBindingOptions,
): CommitWrite[] | undefined {
  // Without a uid or resourceVersion, because it is not stored yet: mergePatches omits those preconditions.
  const volume = newVolume as Volume
  const isUnbound = !claim.spec?.volumeName && !isBindCompleted(claim) && claim.metadata.deletionTimestamp === undefined
  if (!isUnbound || !isReservedFor(volume, claim)) return undefined
  if (claim.spec?.volumeAttributesClassName && !isAttributesClassEnabled) return undefined
  if (mismatchReason(candidateOf(volume), requirementsOf(claim), { isReserved: true }) !== undefined) return undefined
  return bindingWrites(volume, claim, finalizerToRemove)
}
