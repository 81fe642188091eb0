// Intent before effect, for deleting a volume: a provisioner annotates the PV before it requests the deletion of its
// storage. From then on the storage may be deleted, so no claim binds to the PV, even if its claimRef or policy changes.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'

/** On volumes, with the time. An operator who has verified that the storage exists, and keeps it, removes it. */
export const DELETION_REQUESTED_ANNOTATION = 'provisioning.stowage.dev/deletion-asked'

export const isDeletionRequested = (volume: Readonly<PersistentVolume>): boolean =>
  annotationOf(volume, DELETION_REQUESTED_ANNOTATION) !== undefined
