// Plans the next action for a volume: set its phase, clear its claimRef, or reclaim it (plan-reclaim.ts). Pure.
// plan-claim.ts plans the binding; reconcile-volume.ts applies the plan.
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { EventDetails } from '../../runtime/index.ts'
import { mismatchReason } from '../../volumes/choose-volume.ts'
import { isDeletionRequested } from '../../volumes/deletion-requested.ts'
import { type Claim, candidateOf, claimKeyOf, requirementsOf } from '../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../volumes/names.ts'
import { deletionRequested } from './events.ts'
import { planReclaim, type Reclaim, type ReclaimSituation } from './plan-reclaim.ts'
import type { VolumePhase } from './volume-status.ts'

export interface VolumeSituation extends ReclaimSituation {
  /** The claim with the namespace and name of claimRef. Its uid may differ. */
  readonly claim: Claim | undefined
  /** Whether `claim` was just read from the server rather than from the cache, which may be behind. */
  readonly isLive: boolean
}

export type VolumeAction =
  | { readonly do: 'set phase'; readonly phase: VolumePhase }
  /** Read the claim from the server before the volume is released. */
  | { readonly do: 'read claim' }
  | { readonly do: 'clear claimRef'; readonly keepsName: boolean }
  /** The volume has no claim and must not be bound. */
  | { readonly do: 'prevent binding'; readonly event: EventDetails }
  | { readonly do: 'report mismatch'; readonly claim: Claim; readonly message: string }
  | { readonly do: 'reclaim'; readonly reclaim: Reclaim }
  | { readonly do: 'wait'; readonly message: string }

export function planVolume(situation: VolumeSituation): VolumeAction {
  const { volume, claim, isLive } = situation
  const uid = volume.spec?.claimRef?.uid
  if (!uid) {
    if (isDeletionRequested(volume)) return { do: 'prevent binding', event: deletionRequested }
    return { do: 'set phase', phase: 'Available' } // free, or reserved by name
  }
  if (claim?.metadata.uid !== uid) {
    // The cache may still contain a deleted claim with that name, or not contain the claim yet.
    if (!isLive && (claim || !isReleased(situation))) return { do: 'read claim' }
    return planOrphan(situation)
  }
  const boundVolumeName = claim.spec?.volumeName
  if (!boundVolumeName) return planHalfBound(situation, claim)
  if (boundVolumeName === volume.metadata.name) return { do: 'set phase', phase: 'Bound' }
  return planRedundant(situation)
}

/** Plans a volume whose claim was deleted. A Failed volume stays Failed, so that the failure remains visible. */
function planOrphan(situation: VolumeSituation): VolumeAction {
  if (!isReleased(situation)) return { do: 'set phase', phase: 'Released' }
  const reclaim = planReclaim(situation)
  // Before reporting a failure, confirm that the claim does not exist.
  if (!situation.isLive && reclaim.is !== 'delegated') return { do: 'read claim' }
  return { do: 'reclaim', reclaim }
}

/** Plans a volume whose claim has an empty volumeName. The reconcile of the claim completes the binding if possible. */
function planHalfBound(situation: VolumeSituation, claim: Claim): VolumeAction {
  const { volume, isLive } = situation
  // A volume that was deleted before it was bound is reclaimed. The claim then binds to another volume.
  if (volume.metadata.deletionTimestamp && volume.status?.phase !== 'Bound') {
    return isLive ? planOrphan(situation) : { do: 'read claim' }
  }
  const [candidate, requirements] = [candidateOf(volume), requirementsOf(claim)]
  const key = claimKeyOf(volume)
  if (candidate.volumeMode !== requirements.volumeMode) {
    const message = `claim ${key}, named in claimRef, requests volumeMode ${requirements.volumeMode}, but the volume has ${candidate.volumeMode}`
    return { do: 'report mismatch', claim, message }
  }
  const mismatch = mismatchReason(candidate, requirements, { isReserved: true })
  if (mismatch)
    return { do: 'wait', message: `claim ${key}, named in claimRef, cannot be bound to the volume: ${mismatch}` }
  return { do: 'wait', message: `claim ${key}, named in claimRef, is not bound to the volume yet` }
}

/** Plans a volume whose claim is bound to another volume. */
function planRedundant(situation: VolumeSituation): VolumeAction {
  const { volume } = situation
  const isProvisioned = annotationOf(volume, PROVISIONED_BY) !== undefined
  if (isProvisioned && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
    return isReleased(situation)
      ? { do: 'reclaim', reclaim: planReclaim(situation) }
      : { do: 'set phase', phase: 'Released' }
  }
  // Keep the reservation unless a controller chose the volume.
  return { do: 'clear claimRef', keepsName: annotationOf(volume, BOUND_BY_CONTROLLER) === undefined }
}

const isReleased = ({ volume: { status } }: VolumeSituation): boolean =>
  status?.phase === 'Released' || status?.phase === 'Failed'
