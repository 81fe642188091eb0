// Plans the next step for one volume: add or remove the provisioner's finalizer, or delete the volume. Pure.
// reconcile-volume.ts applies the plan and plans again from live objects before a deletion.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isDeletionRequested } from '../../volumes/deletion-requested.ts'
import { BIND_COMPLETED, PROVISIONED_BY } from '../../volumes/names.ts'
import type { Provisioner } from './provisioner.ts'

export type VolumeAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'addFinalizer' }
  | { readonly do: 'removeFinalizer' }
  | { readonly do: 'delete' }

export function planVolume(
  volume: Readonly<PersistentVolume>,
  provisioner: Pick<Provisioner, 'name' | 'owns'>,
  finalizer: string,
): VolumeAction {
  const action = planOwnVolume(volume, finalizer)
  // Checked last, because each provisioner plans each change of every volume, and most changes need nothing.
  return action === NOTHING || isResponsible(volume, provisioner) ? action : NOTHING
}

const NOTHING: VolumeAction = { do: 'nothing' }

/** Plans a volume that the provisioner is responsible for. */
function planOwnVolume(volume: Readonly<PersistentVolume>, finalizer: string): VolumeAction {
  const policy = volume.spec?.persistentVolumeReclaimPolicy
  const phase = volume.status?.phase
  const hasFinalizer = volume.metadata.finalizers?.includes(finalizer) ?? false
  const isBeingDeleted = volume.metadata.deletionTimestamp !== undefined
  if (policy !== 'Delete') return hasFinalizer ? { do: 'removeFinalizer' } : NOTHING // the data stays when the PV is deleted
  if (phase === 'Bound' && !hasFinalizer && !isBeingDeleted) return { do: 'addFinalizer' }
  const deletionRequested = isDeletionRequested(volume)
  // A Released volume without a claimRef is being made Available by an administrator, unless its deletion was requested.
  // A volume that is being deleted and lacks the finalizer was already released by this provisioner.
  if (phase === 'Released' && (volume.spec?.claimRef || deletionRequested) && (hasFinalizer || !isBeingDeleted))
    return { do: 'delete' }
  // A user deletes an Available volume, or the volume became Available after its deletion was requested.
  if (phase === 'Available' && hasFinalizer && (isBeingDeleted || deletionRequested)) return { do: 'delete' }
  return NOTHING
}

/** Whether the provisioned-by annotation names the provisioner or, without the annotation, the provisioner owns the source. */
function isResponsible(volume: Readonly<PersistentVolume>, provisioner: Pick<Provisioner, 'name' | 'owns'>): boolean {
  const provisionedBy = volume.metadata.annotations?.[PROVISIONED_BY]
  return provisionedBy ? provisionedBy === provisioner.name : provisioner.owns(volume)
}

/**
 * Returns the reason why a released volume must not be deleted: its claim exists and has no other volume.
 * Returns undefined if the volume may be deleted. An unbound claim does not bind to a volume that is being deleted.
 */
export function inUseReason(
  volume: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim> | undefined,
): string | undefined {
  const { claimRef } = volume.spec ?? {}
  if (!claim || (claimRef?.uid && claimRef.uid !== claim.metadata.uid)) return undefined
  const { volumeName } = claim.spec ?? {}
  const isBeingDeleted = volume.metadata.deletionTimestamp !== undefined
  if (volumeName ? volumeName !== volume.metadata.name : isBeingDeleted) return undefined
  if (isDeletionRequested(volume) && annotationOf(claim, BIND_COMPLETED) === undefined) return undefined
  return `the claim "${claimRef?.namespace}/${claimRef?.name}" of the volume still exists and has no other volume`
}
