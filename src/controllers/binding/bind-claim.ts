// The four writes of a binding, in an order that can be left off after any of them and taken up again:
//   1 volume          belongs to the claim     from here on no other claim can have it
//   2 volume status   Bound
//   3 claim           names the volume         from here on the claim can have no other
//   4 claim status    Bound, with what the volume has
// Each says only what is still missing. The first write of each object holds for the very version that was judged, so
// of two binders only one gets the volume, and only one the claim. The second is held to the object by its uid alone:
// all it says follows from what the first has settled, and the next pass corrects what has changed since.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CommitWrite } from '../../client/index.ts'
import { type Claim, isReservedFor, type Volume } from '../../volumes/matching.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { statusWithVolume } from './claim-status.ts'
import { mergePatches, type PatchParts } from './merge-patches.ts'
import { phasePatch } from './volume-status.ts'

/** Empty when the binding is complete. `letsGoOf`: a finalizer that leaves the claim with it. */
export const bindingWrites = (volume: Volume, claim: Claim, letsGoOf?: string): CommitWrite[] => [
  ...mergePatches(persistentVolumeKind, volume, {
    main: ownership(volume, claim),
    status: phasePatch(volume, 'Bound'),
  }),
  ...mergePatches(persistentVolumeClaimKind, claim, {
    main: volumeName(claim, volume, letsGoOf),
    status: statusWithVolume(claim, volume),
  }),
]

function ownership(volume: Volume, { metadata }: Claim): PatchParts | undefined {
  const { namespace, name, uid, resourceVersion } = metadata
  const owner = volume.spec?.claimRef
  if (owner?.uid === uid && owner?.name === name && owner?.namespace === namespace) return undefined
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
  const isOurChoice = !isReservedFor(volume, { metadata })
  return { spec: { claimRef }, ...(isOurChoice ? { annotations: { [BOUND_BY_CONTROLLER]: 'yes' } } : {}) }
}

function volumeName(claim: Claim, { metadata: { name } }: Volume, letsGoOf?: string): PatchParts | undefined {
  const isNamed = claim.spec?.volumeName === name
  if (isNamed && annotationOf(claim, BIND_COMPLETED) !== undefined) return undefined
  const annotations = { [BIND_COMPLETED]: 'yes', ...(isNamed ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }) }
  const { finalizers } = claim.metadata
  return {
    annotations,
    ...(isNamed ? {} : { spec: { volumeName: name } }),
    ...(letsGoOf && finalizers ? { finalizers: finalizers.filter((one) => one !== letsGoOf) } : {}),
  }
}
