// The annotation that a provisioner sets on a PersistentVolume before it requests the deletion of the storage. From then on
// the storage may be deleted, so no claim binds to the volume, even if its claimRef or reclaim policy changes.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'

/**
 * The value is the time of the request. An operator who has verified that the storage exists may remove the annotation. The key
 * says "asked" for compatibility with stored volumes.
 */
export const DELETION_REQUESTED_ANNOTATION = 'provisioning.stowage.dev/deletion-asked'

export const isDeletionRequested = (volume: Readonly<PersistentVolume>): boolean =>
  annotationOf(volume, DELETION_REQUESTED_ANNOTATION) !== undefined
