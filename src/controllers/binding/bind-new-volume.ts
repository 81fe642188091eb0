// A volume that was made for a claim, bound in the very commit that saves it: what the binder would write once it has
// seen the volume, a transaction and a round of watch events earlier. Pure. Whatever needs a second look, or is for the
// binder alone to judge, is left to it.
import type { CommitWrite } from '../../client/index.ts'
import { bindingWrites } from './bind-claim.ts'
import { whyUnfit } from './choose-volume.ts'
import { isBindCompleted } from './plan-claim.ts'
import { type Claim, isReservedFor, offerOf, type Volume, wishOf } from './wish.ts'

/**
 * To follow the volume's create in a commit that is one transaction. `letsGoOf` is a finalizer that leaves the claim at
 * the same moment. Nothing where it is left to the binder.
 */
export function bindingOfNew(volume: Volume, claim: Claim, letsGoOf: string): CommitWrite[] | undefined {
  const isOpen = !claim.spec?.volumeName && !isBindCompleted(claim) && claim.metadata.deletionTimestamp === undefined
  // Whether claims with an attributes class are bound depends on a gate that only the binder knows.
  if (!isOpen || claim.spec?.volumeAttributesClassName || !isReservedFor(volume, claim)) return undefined
  if (whyUnfit(offerOf(volume), wishOf(claim), { isReserved: true }) !== undefined) return undefined
  return bindingWrites(volume, claim, letsGoOf)
}
