// The four writes of a binding, in an order that can stop after any of them and be continued:
//   1 volume          claimRef names the claim     no other claim can bind it any more
//   2 volume status   Bound
//   3 claim           volumeName                   the claim can bind no other volume any more
//   4 claim status    Bound, with capacity and access modes of the volume
// Each contains only the missing fields. The first write of each object is conditional on the resourceVersion that was
// planned from, so of two binders one wins the volume and one the claim. The second is conditional on the uid only: it
// follows from the first, and the next reconcile corrects what has changed since.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CommitWrite } from '../../client/index.ts'
import { type Claim, isReservedFor, type Volume } from '../../volumes/matching.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { statusWithVolume } from './claim-status.ts'
import { mergePatches, type PatchParts } from './merge-patches.ts'
import { phasePatch } from './volume-status.ts'

/** Empty when the binding is complete. `removesFinalizer`: a finalizer to remove from the claim with it. */
export const bindingWrites = (volume: Volume, claim: Claim, removesFinalizer?: string): CommitWrite[] => [
  ...mergePatches(persistentVolumeKind, volume, {
    main: ownership(volume, claim),
    status: phasePatch(volume, 'Bound'),
  }),
  ...mergePatches(persistentVolumeClaimKind, claim, {
    main: volumeName(claim, volume, removesFinalizer),
    status: statusWithVolume(claim, volume),
  }),
]

function ownership(volume: Volume, { metadata }: Claim): PatchParts | undefined {
  const { namespace, name, uid, resourceVersion } = metadata
  const owner = volume.spec?.claimRef
  if (owner?.uid === uid && owner?.name === name && owner?.namespace === namespace) return undefined
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
  const isChosenByController = !isReservedFor(volume, { metadata })
  return { spec: { claimRef }, ...(isChosenByController ? { annotations: { [BOUND_BY_CONTROLLER]: 'yes' } } : {}) }
}

function volumeName(claim: Claim, { metadata: { name } }: Volume, removesFinalizer?: string): PatchParts | undefined {
  const isNamed = claim.spec?.volumeName === name
  if (isNamed && annotationOf(claim, BIND_COMPLETED) !== undefined) return undefined
  const annotations = { [BIND_COMPLETED]: 'yes', ...(isNamed ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }) }
  const { finalizers } = claim.metadata
  return {
    annotations,
    ...(isNamed ? {} : { spec: { volumeName: name } }),
    ...(removesFinalizer && finalizers ? { finalizers: finalizers.filter((one) => one !== removesFinalizer) } : {}),
  }
}
