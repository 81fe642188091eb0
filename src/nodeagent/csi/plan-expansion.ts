// Plans NodeExpandVolume of a mounted volume. Pure.
//
//   claim                                              on this node
//   NodeResizePending, NodeResizeInProgress            expand, and update the claim's state
//   FileSystemResizePending alone (an older resizer)   expand, and update the claim's size
//   NodeResizeInfeasible                               nothing: the controller decides about a retry
//   no state, mounted on several nodes, and another    expand, and write nothing: a file system is expanded on every
//   node has reported a larger size                    node; unless node-expansion-not-required is set

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { NODE_EXPANSION_NOT_REQUIRED } from '../../volumes/names.ts'
import { resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { isLess } from '../../volumes/sizes.ts'
import type { CsiVolume } from './csi-volume.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type NodeExpansionPlan =
  | { readonly do: 'nothing' }
  /** Mounted read-only: cannot be expanded. */
  | { readonly do: 'reportReadOnly'; readonly claim: Claim }
  | {
      readonly do: 'expand'
      readonly claim: Claim
      readonly size: string
      readonly reports: 'state' | 'size' | 'nothing'
    }

const NOTHING: NodeExpansionPlan = { do: 'nothing' }

/** `seenSize`: the claim's capacity when the volume was mounted here. */
export function planNodeExpansion({ pv, claim, readOnly }: CsiVolume, seenSize: string | undefined): NodeExpansionPlan {
  const pvcap = pv?.spec?.capacity?.storage
  const cap = claim?.status?.capacity?.storage
  if (!claim || !pvcap || !cap) return NOTHING
  if (isLess(cap, pvcap)) {
    const reports = reportOf(claim)
    if (!reports) return NOTHING
    if (readOnly) return { do: 'reportReadOnly', claim }
    return { do: 'expand', claim, size: larger(claim.status?.allocatedResources?.storage, pvcap), reports }
  }
  const isShared = pv?.spec?.accessModes?.includes('ReadWriteMany')
  const isBehind = seenSize !== undefined && isLess(seenSize, pvcap)
  if (!isShared || !isBehind || readOnly || resizeStateOf(claim) !== undefined) return NOTHING
  if (annotationOf(claim, NODE_EXPANSION_NOT_REQUIRED) !== undefined) return NOTHING
  return { do: 'expand', claim, size: pvcap, reports: 'nothing' }
}

function reportOf(claim: Claim): 'state' | 'size' | undefined {
  const state = resizeStateOf(claim)
  if (state === 'NodeResizePending' || state === 'NodeResizeInProgress') return 'state'
  const isOldResizer = state === undefined && claim.status?.allocatedResources?.storage === undefined
  return isOldResizer && resizeCondition(claim, 'FileSystemResizePending') ? 'size' : undefined
}

/** The device may be larger than requested; the file system follows the device. */
const larger = (alloc: string | undefined, pvcap: string): string =>
  alloc !== undefined && isLess(pvcap, alloc) ? alloc : pvcap
