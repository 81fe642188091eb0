// Whether a mounted volume is to grow on this node, and to what size. Pure.
//
//   claim                                              on this node
//   NodeResizePending, NodeResizeInProgress            grow, and tell the claim
//   FileSystemResizePending alone (an older resizer)   grow, and tell the claim
//   NodeResizeInfeasible                               leave it: the controller says when it is worth another try
//   settled, mounted on many nodes, and another node   grow, and tell nobody: file systems are grown where they are
//   has told of a larger size                          mounted; unless the controller says that there is no need

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { NODE_EXPANSION_NOT_REQUIRED } from '../../volumes/names.ts'
import { resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { isLess } from '../../volumes/sizes.ts'
import type { CsiVolume } from './csi-volume.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type GrowPlan =
  | { readonly do: 'nothing' }
  /** It cannot: it is mounted for reading only. */
  | { readonly do: 'tellReadOnly'; readonly claim: Claim }
  | { readonly do: 'grow'; readonly claim: Claim; readonly size: string; readonly tells: 'state' | 'size' | 'nobody' }

const NOTHING: GrowPlan = { do: 'nothing' }

/** `seenSize`: what the claim had when the volume was first looked at after it was mounted here. */
export function planGrow({ pv, claim, readOnly }: CsiVolume, seenSize: string | undefined): GrowPlan {
  const pvcap = pv?.spec?.capacity?.storage
  const cap = claim?.status?.capacity?.storage
  if (!claim || !pvcap || !cap) return NOTHING
  if (isLess(cap, pvcap)) {
    const tells = turnOf(claim)
    if (!tells) return NOTHING
    if (readOnly) return { do: 'tellReadOnly', claim }
    return { do: 'grow', claim, size: larger(claim.status?.allocatedResources?.storage, pvcap), tells }
  }
  const isShared = pv?.spec?.accessModes?.includes('ReadWriteMany')
  const isBehind = seenSize !== undefined && isLess(seenSize, pvcap)
  if (!isShared || !isBehind || readOnly || resizeStateOf(claim) !== undefined) return NOTHING
  if (annotationOf(claim, NODE_EXPANSION_NOT_REQUIRED) !== undefined) return NOTHING
  return { do: 'grow', claim, size: pvcap, tells: 'nobody' }
}

function turnOf(claim: Claim): 'state' | 'size' | undefined {
  const state = resizeStateOf(claim)
  if (state === 'NodeResizePending' || state === 'NodeResizeInProgress') return 'state'
  const isOldResizer = state === undefined && claim.status?.allocatedResources?.storage === undefined
  return isOldResizer && resizeCondition(claim, 'FileSystemResizePending') ? 'size' : undefined
}

/** A driver may have made the device larger than it was asked to; the file system follows the device. */
const larger = (alloc: string | undefined, pvcap: string): string =>
  alloc !== undefined && isLess(pvcap, alloc) ? alloc : pvcap
