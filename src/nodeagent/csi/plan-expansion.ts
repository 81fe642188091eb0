// Plans NodeExpandVolume for a mounted volume. Pure.
//
//   claim                                              plan
//   NodeResizePending, NodeResizeInProgress            expand, and update the state of the claim
//   FileSystemResizePending alone (an older resizer)   expand, and update the size of the claim
//   NodeResizeInfeasible                               expand once when the pod starts, and update the claim's state;
//                                                      otherwise do nothing: the controller decides when to retry
//   no state, ReadWriteMany, and another node has      expand without an update of the claim, unless
//   already updated the size of the claim              node-expansion-not-required is set

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { NODE_EXPANSION_NOT_REQUIRED } from '../../volumes/names.ts'
import { resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { isLess } from '../../volumes/sizes.ts'
import type { CsiVolume } from './csi-volume.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type NodeExpansionPlan =
  | { readonly do: 'nothing' }
  /** The volume is mounted read-only and cannot be expanded. */
  | { readonly do: 'reportReadOnly'; readonly claim: Claim }
  | {
      readonly do: 'expand'
      readonly claim: Claim
      readonly size: string
      readonly updates: 'state' | 'size' | 'nothing'
    }

const NOTHING: NodeExpansionPlan = { do: 'nothing' }

interface MountState {
  /** The claim's capacity when the volume was mounted on this node. */
  readonly mountedSize: string | undefined
  readonly isPodStarting: boolean
}

export function planNodeExpansion(
  { pv, claim, readOnly }: CsiVolume,
  { mountedSize, isPodStarting }: MountState,
): NodeExpansionPlan {
  const pvSize = pv?.spec?.capacity?.storage
  const claimSize = claim?.status?.capacity?.storage
  if (!claim || !pvSize || !claimSize) return NOTHING
  if (isLess(claimSize, pvSize)) {
    const updates = chooseUpdate(claim, isPodStarting)
    if (!updates) return NOTHING
    if (readOnly) return { do: 'reportReadOnly', claim }
    return { do: 'expand', claim, size: maxSize(claim.status?.allocatedResources?.storage, pvSize), updates }
  }
  const isShared = pv?.spec?.accessModes?.includes('ReadWriteMany')
  const isOutdated = mountedSize !== undefined && isLess(mountedSize, pvSize)
  if (!isShared || !isOutdated || readOnly || resizeStateOf(claim) !== undefined) return NOTHING
  if (annotationOf(claim, NODE_EXPANSION_NOT_REQUIRED) !== undefined) return NOTHING
  return { do: 'expand', claim, size: pvSize, updates: 'nothing' }
}

function chooseUpdate(claim: Claim, isPodStarting: boolean): 'state' | 'size' | undefined {
  const state = resizeStateOf(claim)
  if (state === 'NodeResizePending' || state === 'NodeResizeInProgress') return 'state'
  if (state === 'NodeResizeInfeasible' && isPodStarting) return 'state'
  const isOldResizer = state === undefined && claim.status?.allocatedResources?.storage === undefined
  return isOldResizer && resizeCondition(claim, 'FileSystemResizePending') ? 'size' : undefined
}

/** Returns the larger size, because the device may be larger than requested. */
const maxSize = (allocatedSize: string | undefined, pvSize: string): string =>
  allocatedSize !== undefined && isLess(pvSize, allocatedSize) ? allocatedSize : pvSize
