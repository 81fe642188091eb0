// The writes that bind a newly provisioned volume to its claim in the commit that creates the volume: what the binder
// would write after it has seen the volume, one transaction and one round of watch events earlier. Pure. Unusual cases
// are left to the binder.
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { CommitWrite } from '../../client/index.ts'
import { mismatchReason } from '../../volumes/choose-volume.ts'
import { type Claim, candidateOf, isReservedFor, requirementsOf, type Volume } from '../../volumes/matching.ts'
import { bindingWrites } from './bind-claim.ts'
import { isBindCompleted } from './plan-claim.ts'

export interface BindingNew {
  /** A finalizer to remove from the claim in the same commit. */
  readonly removesFinalizer: string
  /** The feature gate VolumeAttributesClass. */
  readonly bindsAttributesClasses: boolean
}

/** The writes after the volume's create, in one transaction with it. Undefined where the binder has to do it. */
export function bindingOfNew(
  created: Readonly<PersistentVolume>,
  claim: Claim,
  { removesFinalizer, bindsAttributesClasses }: BindingNew,
): CommitWrite[] | undefined {
  // Not stored yet, so it has no uid and resourceVersion: mergePatches omits those conditions.
  const volume = created as Volume
  const isOpen = !claim.spec?.volumeName && !isBindCompleted(claim) && claim.metadata.deletionTimestamp === undefined
  if (!isOpen || !isReservedFor(volume, claim)) return undefined
  if (claim.spec?.volumeAttributesClassName && !bindsAttributesClasses) return undefined
  if (mismatchReason(candidateOf(volume), requirementsOf(claim), { isReserved: true }) !== undefined) return undefined
  return bindingWrites(volume, claim, removesFinalizer)
}
