// Plans the next step for one volume, as data: set or remove our finalizer, or delete the volume. Pure. delete-volume.ts
// applies the plan, after planning again from live objects.

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
  if (!isResponsible(volume, provisioner)) return { do: 'nothing' }
  const policy = volume.spec?.persistentVolumeReclaimPolicy
  const phase = volume.status?.phase
  const hasFinalizer = volume.metadata.finalizers?.includes(finalizer) ?? false
  const isBeingDeleted = volume.metadata.deletionTimestamp !== undefined
  if (policy !== 'Delete') return { do: hasFinalizer ? 'removeFinalizer' : 'nothing' } // the data stays when the PV is deleted
  if (phase === 'Bound' && !hasFinalizer && !isBeingDeleted) return { do: 'addFinalizer' }
  const deletionRequested = isDeletionRequested(volume)
  // Without a claimRef an administrator is about to free it, unless deletion has begun. Being deleted and without our
  // finalizer, we have released it before.
  if (phase === 'Released' && (volume.spec?.claimRef || deletionRequested) && (hasFinalizer || !isBeingDeleted))
    return { do: 'delete' }
  // Freed and then deleted by a user, or freed after deletion had begun.
  if (phase === 'Available' && hasFinalizer && (isBeingDeleted || deletionRequested)) return { do: 'delete' }
  return { do: 'nothing' }
}

/** By the provisioned-by annotation; without one, by its source. */
function isResponsible(volume: Readonly<PersistentVolume>, provisioner: Pick<Provisioner, 'name' | 'owns'>): boolean {
  const provisionedBy = volume.metadata.annotations?.[PROVISIONED_BY]
  return provisionedBy ? provisionedBy === provisioner.name : provisioner.owns(volume)
}

/**
 * Why a released volume must not be deleted: its claim exists and has no other volume. Undefined if it may be deleted. A
 * claim that is not bound yet does not bind to a volume that is being deleted.
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
  return `its claim "${claimRef?.namespace}/${claimRef?.name}" still exists and has no other volume`
}
