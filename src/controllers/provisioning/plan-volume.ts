// What to do next for one volume, as data: keep our finalizer where it belongs, and delete what nobody wants any more.
// Pure. Doing it, after one more look at the live objects, is delete-volume.ts.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isDeletionRequested } from '../../volumes/deletion-requested.ts'
import { BIND_COMPLETED, PROVISIONED_BY } from '../../volumes/names.ts'
import type { Provisioner } from './provisioner.ts'

export type VolumeAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'putFinalizer' }
  | { readonly do: 'dropFinalizer' }
  | { readonly do: 'delete' }

export function planVolume(
  volume: Readonly<PersistentVolume>,
  provisioner: Pick<Provisioner, 'name' | 'owns'>,
  finalizer: string,
): VolumeAction {
  if (!isResponsible(volume, provisioner)) return { do: 'nothing' }
  const policy = volume.spec?.persistentVolumeReclaimPolicy
  const phase = volume.status?.phase
  const isHeld = volume.metadata.finalizers?.includes(finalizer) ?? false
  const isGoing = volume.metadata.deletionTimestamp !== undefined
  if (policy !== 'Delete') return { do: isHeld ? 'dropFinalizer' : 'nothing' } // the data stays, whoever deletes the object
  if (phase === 'Bound' && !isHeld && !isGoing) return { do: 'putFinalizer' }
  const isAsked = isDeletionRequested(volume)
  // Without a claim an administrator is about to give it to another; if there is still something to give. Going and not
  // held, it was let go of before.
  if (phase === 'Released' && (volume.spec?.claimRef || isAsked) && (isHeld || !isGoing)) return { do: 'delete' }
  // Given back, and then deleted by someone; or given back too late.
  if (phase === 'Available' && isHeld && (isGoing || isAsked)) return { do: 'delete' }
  return { do: 'nothing' }
}

/** By the name it carries; where it carries none, by what it is. */
function isResponsible(volume: Readonly<PersistentVolume>, provisioner: Pick<Provisioner, 'name' | 'owns'>): boolean {
  const by = volume.metadata.annotations?.[PROVISIONED_BY]
  return by ? by === provisioner.name : provisioner.owns(volume)
}

/**
 * Why a released volume may still be wanted: its claim exists, and has no other. Nothing when it may go. One that is
 * being deleted, or whose storage is, is not taken by a claim that does not have it yet.
 */
export function whyWanted(
  volume: Readonly<PersistentVolume>,
  claim: Readonly<PersistentVolumeClaim> | undefined,
): string | undefined {
  const { claimRef } = volume.spec ?? {}
  if (!claim || (claimRef?.uid && claimRef.uid !== claim.metadata.uid)) return undefined
  const { volumeName } = claim.spec ?? {}
  const isGoing = volume.metadata.deletionTimestamp !== undefined
  if (volumeName ? volumeName !== volume.metadata.name : isGoing) return undefined
  if (isDeletionRequested(volume) && annotationOf(claim, BIND_COMPLETED) === undefined) return undefined
  return `its claim "${claimRef?.namespace}/${claimRef?.name}" still exists and has no other volume`
}
