// Plans one volume, as data: its phase, whether its claimRef is cleared, and its reclaim when the claim was deleted
// (plan-reclaim.ts). Binding is planned for the claim (plan-claim.ts); reconcile-volume.ts applies the plan. Pure.
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
  /** The claim that claimRef names, by namespace and name; its uid may differ. */
  readonly claim: Claim | undefined
  /** `claim` was just read from the server rather than from the cache, which may be behind. */
  readonly isLive: boolean
}

export type VolumeAction =
  | { readonly do: 'set phase'; readonly phase: VolumePhase }
  /** Before treating its claim as deleted. */
  | { readonly do: 'read its claim' }
  | { readonly do: 'clear claimRef'; readonly keepsName: boolean }
  /** Free, but not to be bound. */
  | { readonly do: 'withhold'; readonly event: EventDetails }
  | { readonly do: 'report mismatch'; readonly claim: Claim; readonly because: string }
  | { readonly do: 'reclaim'; readonly how: Reclaim }
  | { readonly do: 'wait'; readonly because: string }

export function planVolume(situation: VolumeSituation): VolumeAction {
  const { volume, claim, isLive } = situation
  const uid = volume.spec?.claimRef?.uid
  if (!uid) {
    if (isDeletionRequested(volume)) return { do: 'withhold', event: deletionRequested }
    return { do: 'set phase', phase: 'Available' } // free, or reserved by name for a claim that does not exist yet
  }
  if (claim?.metadata.uid !== uid) {
    // The cache may show an older claim of that name, or not show the claim yet.
    if (!isLive && (claim || !isReleased(situation))) return { do: 'read its claim' }
    return planOrphan(situation)
  }
  const boundVolumeName = claim.spec?.volumeName
  if (!boundVolumeName) return planHalfBound(situation, claim)
  if (boundVolumeName === volume.metadata.name) return { do: 'set phase', phase: 'Bound' }
  return planSuperseded(situation)
}

/** Its claim was deleted. A Failed volume stays Failed, so that the failure remains visible. */
function planOrphan(situation: VolumeSituation): VolumeAction {
  if (!isReleased(situation)) return { do: 'set phase', phase: 'Released' }
  const how = planReclaim(situation)
  // Before reporting a failure, confirm that the claim does not exist.
  if (!situation.isLive && how.is !== 'delegated') return { do: 'read its claim' }
  return { do: 'reclaim', how }
}

/** claimRef names the claim, whose volumeName is still empty. Reconciling the claim binds it if possible. */
function planHalfBound(situation: VolumeSituation, claim: Claim): VolumeAction {
  const { volume, isLive } = situation
  // Deleted before it was bound: it is reclaimed, and the claim looks for another volume.
  if (volume.metadata.deletionTimestamp && volume.status?.phase !== 'Bound') {
    return isLive ? planOrphan(situation) : { do: 'read its claim' }
  }
  const [candidate, requirements] = [candidateOf(volume), requirementsOf(claim)]
  const key = claimKeyOf(volume)
  if (candidate.volumeMode !== requirements.volumeMode) {
    const because = `claim ${key} of its claimRef requests volumeMode ${requirements.volumeMode}, and the volume has ${candidate.volumeMode}`
    return { do: 'report mismatch', claim, because }
  }
  const why = mismatchReason(candidate, requirements, { isReserved: true })
  if (why) return { do: 'wait', because: `claim ${key} of its claimRef cannot be bound to it: ${why}` }
  return { do: 'wait', because: `claim ${key} of its claimRef is not bound to it yet` }
}

/** The claim is bound to another volume. */
function planSuperseded(situation: VolumeSituation): VolumeAction {
  const { volume } = situation
  const isProvisioned = annotationOf(volume, PROVISIONED_BY) !== undefined
  if (isProvisioned && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') {
    return isReleased(situation)
      ? { do: 'reclaim', how: planReclaim(situation) }
      : { do: 'set phase', phase: 'Released' }
  }
  // A reservation by a user is kept.
  return { do: 'clear claimRef', keepsName: annotationOf(volume, BOUND_BY_CONTROLLER) === undefined }
}

const isReleased = ({ volume: { status } }: VolumeSituation): boolean =>
  status?.phase === 'Released' || status?.phase === 'Failed'
