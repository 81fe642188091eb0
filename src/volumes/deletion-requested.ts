// Intent before effect, for the end of a volume: before its storage is asked to delete what is behind it, the volume says
// so. From then on it may stand for nothing, and no claim is given it, whatever becomes of its claimRef and policy.
import { annotationOf } from '../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'

/** On volumes, with the time. Whoever has seen that the storage is still there, and wants to keep it, takes it off. */
export const DELETION_REQUESTED = 'provisioning.stowage.dev/deletion-asked'

export const isDeletionRequested = (volume: Readonly<PersistentVolume>): boolean =>
  annotationOf(volume, DELETION_REQUESTED) !== undefined
