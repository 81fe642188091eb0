// What should happen to one volume, as data: which phase it is in, whether it is given back, and what becomes of it
// when its claim is gone. Binding it to a claim is the claim's business (plan-claim.ts). Pure.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { Happening } from '../../runtime/index.ts'
import { mismatchReason } from '../../volumes/choose-volume.ts'
import { isDeletionRequested } from '../../volumes/deletion-requested.ts'
import { type Claim, candidateOf, claimKeyOf, requirementsOf } from '../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../volumes/names.ts'
import { deletionAsked } from './events.ts'
import { planReclaim, type Reclaim, type ReclaimSituation } from './plan-reclaim.ts'
import type { VolumePhase } from './volume-status.ts'

export interface VolumeSituation extends ReclaimSituation {
  /** The claim its claimRef names, by namespace and name. */
  readonly claim: Claim | undefined
  /** `claim` was read from the server just now; what a cache says may be out of date. */
  readonly isSure: boolean
}

export type VolumeAction =
  | { readonly do: 'set phase'; readonly phase: VolumePhase }
  /** Before believing that its claim is gone. */
  | { readonly do: 'read its claim' }
  | { readonly do: 'give back'; readonly keepsName: boolean }
  /** Nobody has it, and nobody is given it. */
  | { readonly do: 'hold back'; readonly tell: Happening }
  | { readonly do: 'tell of mismatch'; readonly claim: Claim; readonly because: string }
  | { readonly do: 'reclaim'; readonly how: Reclaim }
  | { readonly do: 'wait'; readonly because: string }

export function planVolume(situation: VolumeSituation): VolumeAction {
  const { volume, claim, isSure } = situation
  const uid = volume.spec?.claimRef?.uid
  if (!uid) {
    if (isDeletionRequested(volume)) return { do: 'hold back', tell: deletionAsked }
    return { do: 'set phase', phase: 'Available' } // nobody's, or reserved by name for a claim to come
  }
  if (claim?.metadata.uid !== uid) {
    // A namesake is not the claim, and what is missing here may only be unknown here.
    if (!isSure && (claim || !isOver(situation))) return { do: 'read its claim' }
    return planOrphan(situation)
  }
  const wanted = claim.spec?.volumeName
  if (!wanted) return planUnanswered(situation, claim)
  if (wanted === volume.metadata.name) return { do: 'set phase', phase: 'Bound' }
  return planLoser(situation)
}

/** Its claim is gone. Failed stays Failed: people should see that something went wrong. */
function planOrphan(situation: VolumeSituation): VolumeAction {
  if (!isOver(situation)) return { do: 'set phase', phase: 'Released' }
  const how = planReclaim(situation)
  // A claim that has come back has not lost its volume; this is the last look before anything is declared failed.
  if (!situation.isSure && how.is !== 'left') return { do: 'read its claim' }
  return { do: 'reclaim', how }
}

/** The volume is the claim's, but the claim does not know yet; its own pass will bind it if it can. */
function planUnanswered(situation: VolumeSituation, claim: Claim): VolumeAction {
  const { volume, isSure } = situation
  // Deleted before it was bound, no claim takes it any more. It goes the way of all volumes, and the claim starts over.
  if (volume.metadata.deletionTimestamp && volume.status?.phase !== 'Bound') {
    return isSure ? planOrphan(situation) : { do: 'read its claim' }
  }
  const [offer, wish] = [candidateOf(volume), requirementsOf(claim)]
  const key = claimKeyOf(volume)
  if (offer.volumeMode !== wish.volumeMode) {
    const because = `the claim ${key} that it belongs to wants volumeMode ${wish.volumeMode}, and it is ${offer.volumeMode}`
    return { do: 'tell of mismatch', claim, because }
  }
  const why = mismatchReason(offer, wish, { isReserved: true })
  if (why) return { do: 'wait', because: `it belongs to the claim ${key}, which cannot be bound to it: ${why}` }
  return { do: 'wait', because: `it belongs to the claim ${key}, which is yet to be bound to it` }
}

/** The claim has taken another volume. */
function planLoser(situation: VolumeSituation): VolumeAction {
  const { volume } = situation
  const wasMadeForIt = annotationOf(volume, PROVISIONED_BY) !== undefined
  if (wasMadeForIt && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
    return isOver(situation) ? { do: 'reclaim', how: planReclaim(situation) } : { do: 'set phase', phase: 'Released' }
  }
  // What a user has reserved stays reserved.
  return { do: 'give back', keepsName: annotationOf(volume, BOUND_BY_CONTROLLER) === undefined }
}

const isOver = ({ volume: { status } }: VolumeSituation): boolean =>
  status?.phase === 'Released' || status?.phase === 'Failed'
