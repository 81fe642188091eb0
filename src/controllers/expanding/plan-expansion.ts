// Plans the next step of an expansion. Pure: claim, volume and the driver's last response in, one step out.
// Which size to request is volumes/target-size.ts; applying the step is reconcile-claim.ts.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { failureMessage, INSUFFICIENT_STORAGE, resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage, volumeCapacity } from '../../volumes/sizes.ts'
import { targetOf } from './target-size.ts'

export interface Situation {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly volume: Readonly<PersistentVolume>
  /** The driver's last response was a final error for the size in status.allocatedResources. */
  readonly isRejected: boolean
  /** The driver rejected the call because the volume was in use, and it still is. */
  readonly isHeldByUse: boolean
  /** The driver expands volumes by NodeExpandVolume only. */
  readonly isNodeOnly: boolean
  /** Why a size exceeds the free capacity. Undefined: it fits, or the capacity is not known. */
  shortageFor(target: string): string | undefined
  readonly nowMs: number
  /** Delay between two attempts for an infeasible size. */
  readonly slowRetryMs: number
}

export type ExpansionStep =
  | { readonly do: 'nothing' }
  /** The node has finished: remove the pre-resize capacity from the volume. */
  | { readonly do: 'removeAnnotation' }
  /** The status describes an expansion that has ended. */
  | { readonly do: 'clearStatus' }
  /** The device has its size, the file system does not, and the claim has no condition for the node. */
  | { readonly do: 'leaveToNode' }
  /** Without `afterMs`: until an event wakes the claim. */
  | { readonly do: 'wait'; readonly because: string; readonly afterMs?: number }
  /** Wait until no pod uses the volume. */
  | { readonly do: 'hold' }
  /** The claim requests no more than its capacity. `volumeSize`: the size to restore on the volume object. */
  | { readonly do: 'cancel'; readonly volumeSize?: string }
  /** Reject the size without calling the driver. */
  | { readonly do: 'refuse'; readonly target: string; readonly because: string; readonly reason?: string }
  | { readonly do: 'expand'; readonly target: string; readonly attempt: Attempt }

/**
 *   first     a size that was not requested before
 *   retry     a size that was infeasible
 *   resume    a size that the claim's status already names as in progress
 */
export type Attempt = 'first' | 'retry' | 'resume'

const NOTHING: ExpansionStep = { do: 'nothing' }
/** The largest size in a CSI message (int64). */
const BYTES_MAX = 2n ** 63n - 1n

export function planExpansion(situation: Situation): ExpansionStep {
  const { claim, volume } = situation
  const [cap, pvcap] = [claimCapacity(claim), volumeCapacity(volume)]
  if (annotationOf(volume, PRE_RESIZE_CAPACITY) !== undefined && !isLess(cap, pvcap)) return { do: 'removeAnnotation' }
  if (claim.metadata.deletionTimestamp) return NOTHING
  if (hasStaleStatus(situation)) return { do: 'clearStatus' }
  if (isPartlyExpanded(situation)) return { do: 'leaveToNode' }
  return isLess(cap, requestedStorage(claim)) ? planGrowth(situation) : planSatisfied(situation)
}

export const requestOf = ({ spec }: Situation['claim']): string => spec?.resources?.requests?.storage ?? '0'
export const capacityOf = ({ status }: Situation['claim']): string => status?.capacity?.storage ?? '0'
export const allocatedOf = ({ status }: Situation['claim']): string | undefined => status?.allocatedResources?.storage
export const sizeOf = ({ spec }: Situation['volume']): string => spec?.capacity?.storage ?? '0'

/** A failure is saved unconditionally and so may arrive on the status after the expansion has ended. */
function hasStaleStatus({ claim, volume }: Situation): boolean {
  const [cap, alloc, state] = [claimCapacity(claim), allocatedStorage(claim), resizeStateOf(claim)]
  if (isLess(cap, volumeCapacity(volume))) return false
  if (state === undefined) return !isLess(cap, requestedStorage(claim)) && hasError(claim)
  return state.startsWith('Node') && alloc !== undefined && !isLess(cap, alloc)
}

/** The volume was expanded for an earlier claim that released it before its node expanded the file system. */
function isPartlyExpanded({ claim, volume }: Situation): boolean {
  const pvcap = volumeCapacity(volume)
  return (
    annotationOf(volume, PRE_RESIZE_CAPACITY) !== undefined &&
    resizeStateOf(claim) === undefined &&
    allocatedStorage(claim) === undefined &&
    isLess(claimCapacity(claim), pvcap) &&
    isLess(requestedStorage(claim), pvcap) &&
    resizeCondition(claim, 'FileSystemResizePending') === undefined
  )
}

export const hasError = (claim: Situation['claim']): boolean =>
  resizeCondition(claim, 'ControllerResizeError') !== undefined ||
  resizeCondition(claim, 'NodeResizeError') !== undefined

/** The claim has the size it requests. An expansion started before the request was lowered is finished or cancelled. */
function planSatisfied(situation: Situation): ExpansionStep {
  const { claim, volume, isRejected, isNodeOnly } = situation
  const [cap, alloc] = [claimCapacity(claim), allocatedStorage(claim)]
  switch (resizeStateOf(claim)) {
    case 'ControllerResizeInfeasible':
      return { do: 'cancel' }
    case 'ControllerResizeInProgress':
      if (isRejected || alloc === undefined || !isLess(cap, alloc)) return { do: 'cancel' }
      return planCall(alloc, situation) // the volume may have that size: only repeating the call shows it
    case 'NodeResizeInfeasible':
      // An expanded device cannot shrink. With a node-only driver nothing was expanded.
      if (!isNodeOnly) return NOTHING
      return isLess(cap, volumeCapacity(volume)) ? { do: 'cancel', volumeSize: cap } : { do: 'cancel' }
    default:
      return NOTHING
  }
}

function planGrowth(situation: Situation): ExpansionStep {
  const { claim, volume, isRejected, isNodeOnly } = situation
  const sizes = {
    req: requestedStorage(claim),
    alloc: allocatedStorage(claim),
    pvcap: volumeCapacity(volume),
    state: resizeStateOf(claim),
    isWaitingForNode: resizeCondition(claim, 'FileSystemResizePending') !== undefined,
  }
  const target = targetOf(sizes, { isFinal: isRejected, isNodeOnly })
  return target === undefined ? NOTHING : planCall(target, situation)
}

function planCall(target: string, situation: Situation): ExpansionStep {
  const { claim } = situation
  const attempt = attemptOf(target, claim)
  if (attempt !== 'resume') {
    const refusal = refusalOf(target, situation)
    if (refusal) {
      const isReported =
        attempt === 'retry' &&
        resizeCondition(claim, 'ControllerResizeError')?.message === failureMessage(refusal.because)
      return isReported ? { do: 'wait', because: refusal.because } : { do: 'refuse', target, ...refusal }
    }
  }
  if (situation.isHeldByUse) return { do: 'hold' }
  const afterMs = retryDelayMs(target, situation)
  if (afterMs > 0) return { do: 'wait', because: `size ${target} is infeasible; it is retried later`, afterMs }
  return { do: 'expand', target, attempt }
}

function attemptOf(target: string, claim: Situation['claim']): Attempt {
  const state = resizeStateOf(claim)
  if (state === undefined || !isSame(target, allocatedStorage(claim))) return 'first'
  return state === 'ControllerResizeInfeasible' ? 'retry' : 'resume'
}

function refusalOf(target: string, situation: Situation): { because: string; reason?: string } | undefined {
  if (quantityToBytes(target) > BYTES_MAX)
    return { because: `${target} exceeds the largest size in CSI (2^63-1 bytes)` }
  const because = situation.shortageFor(target)
  return because === undefined ? undefined : { because, reason: INSUFFICIENT_STORAGE }
}

/** Remaining delay of a size that the driver or the node reported infeasible; none if it only lacked free capacity. */
function retryDelayMs(target: string, { claim, nowMs, slowRetryMs }: Situation): number {
  const state = resizeStateOf(claim)
  if (!state?.endsWith('Infeasible') || !isSame(target, allocatedStorage(claim))) return 0
  const error = resizeCondition(claim, state === 'NodeResizeInfeasible' ? 'NodeResizeError' : 'ControllerResizeError')
  if (error?.reason === INSUFFICIENT_STORAGE) return 0
  const sinceMs = Date.parse(error?.lastProbeTime ?? error?.lastTransitionTime ?? '')
  if (Number.isNaN(sinceMs)) return 0
  return Math.min(sinceMs + slowRetryMs - nowMs, slowRetryMs) // at most one interval, even if clocks differ
}

const isSame = (a: string, b: string | undefined): boolean => b !== undefined && !isLess(a, b) && !isLess(b, a)
