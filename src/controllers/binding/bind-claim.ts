// Builds the four writes of a binding. After a crash between two of them the next reconcile writes the remaining ones.
//   1 volume          claimRef       no other claim can bind the volume
//   2 volume status   phase Bound
//   3 claim           volumeName     the claim can bind no other volume
//   4 claim status    phase Bound, capacity and access modes of the volume
// The first write of each object requires the resourceVersion that the plan was based on: of two concurrent binders,
// only one succeeds. The second write requires only the uid.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CommitWrite } from '../../client/index.ts'
import { type Claim, isReservedFor, type Volume } from '../../volumes/matching.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, LAST_FAILURE } from '../../volumes/names.ts'
import { statusWithVolume } from './claim-status.ts'
import { mergePatches, type ObjectPatch } from './merge-patches.ts'
import { phasePatch } from './volume-status.ts'

/** Returns no writes if the binding is complete. `finalizerToRemove` is removed in the write that sets volumeName. */
export const bindingWrites = (volume: Volume, claim: Claim, finalizerToRemove?: string): CommitWrite[] => [
  ...mergePatches(persistentVolumeKind, volume, {
    main: claimRefPatch(volume, claim),
    status: phasePatch(volume, 'Bound'),
  }),
  ...mergePatches(persistentVolumeClaimKind, claim, {
    main: volumeNamePatch(claim, volume, finalizerToRemove),
    status: statusWithVolume(claim, volume),
  }),
]

/** Whether `bindingWrites` would return no writes. */
export const isBindingComplete = (volume: Volume, claim: Claim): boolean =>
  !claimRefPatch(volume, claim) &&
  !phasePatch(volume, 'Bound') &&
  !volumeNamePatch(claim, volume) &&
  !statusWithVolume(claim, volume)

function claimRefPatch(volume: Volume, { metadata }: Claim): ObjectPatch | undefined {
  const { namespace, name, uid, resourceVersion } = metadata
  const currentRef = volume.spec?.claimRef
  if (currentRef?.uid === uid && currentRef?.name === name && currentRef?.namespace === namespace) return undefined
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
  const isChosenByController = !isReservedFor(volume, { metadata })
  return { spec: { claimRef }, ...(isChosenByController ? { annotations: { [BOUND_BY_CONTROLLER]: 'yes' } } : {}) }
}

function volumeNamePatch(
  claim: Claim,
  { metadata: { name } }: Volume,
  finalizerToRemove?: string,
): ObjectPatch | undefined {
  const hasVolumeName = claim.spec?.volumeName === name
  if (hasVolumeName && annotationOf(claim, BIND_COMPLETED) !== undefined) return undefined
  const annotations = {
    [BIND_COMPLETED]: 'yes',
    ...(hasVolumeName ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }),
    ...(annotationOf(claim, LAST_FAILURE) === undefined ? {} : { [LAST_FAILURE]: null }),
  }
  const { finalizers } = claim.metadata
  return {
    annotations,
    ...(hasVolumeName ? {} : { spec: { volumeName: name } }),
    ...(finalizerToRemove && finalizers
      ? { finalizers: finalizers.filter((finalizer) => finalizer !== finalizerToRemove) }
      : {}),
  }
}
