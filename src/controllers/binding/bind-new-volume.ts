// A volume that was made for a claim, bound in the very commit that saves it: what the binder would write once it has
// seen the volume, a transaction and a round of watch events earlier. Pure. Whatever needs a second look, or is for the
// binder alone to judge, is left to it.
import type { CommitWrite } from '../../client/index.ts'
import { mismatchReason } from '../../volumes/choose-volume.ts'
import { type Claim, candidateOf, isReservedFor, requirementsOf, type Volume } from '../../volumes/matching.ts'
import { bindingWrites } from './bind-claim.ts'
import { isBindCompleted } from './plan-claim.ts'

export interface BindingNew {
  /** A finalizer that leaves the claim at the same moment. */
  readonly letsGoOf: string
  /** The gate VolumeAttributesClass is on. */
  readonly bindsAttributesClasses: boolean
}

/** To follow the volume's create in a commit that is one transaction. Nothing where it is left to the binder. */
export function bindingOfNew(
  volume: Volume,
  claim: Claim,
  { letsGoOf, bindsAttributesClasses }: BindingNew,
): CommitWrite[] | undefined {
  const isOpen = !claim.spec?.volumeName && !isBindCompleted(claim) && claim.metadata.deletionTimestamp === undefined
  if (!isOpen || !isReservedFor(volume, claim)) return undefined
  if (claim.spec?.volumeAttributesClassName && !bindsAttributesClasses) return undefined
  if (mismatchReason(candidateOf(volume), requirementsOf(claim), { isReserved: true }) !== undefined) return undefined
  return bindingWrites(volume, claim, letsGoOf)
}
