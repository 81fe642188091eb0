// Plans the next step of an expansion from the claim, the volume and the driver's last response. Pure.
// target-size.ts determines the size to request; reconcile-claim.ts applies the step.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { failureMessage, INSUFFICIENT_STORAGE, resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage, volumeCapacity } from '../../volumes/sizes.ts'
import { targetSizeOf } from './target-size.ts'

export interface Situation {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly volume: Readonly<PersistentVolume>
  /** Whether a call without a final response may have made the volume larger than recorded. */
  readonly mayBeLarger: boolean
  /** Whether the user has edited the claim since the last attempt. An infeasible size is then retried immediately. */
  readonly isEdited: boolean
  /** Whether the driver rejected the call because the volume was in use, and the volume is still in use. */
  readonly isBlockedByUse: boolean
  /** Whether the driver expands volumes only with NodeExpandVolume. */
  readonly isNodeOnly: boolean
  /** Returns a message if the size exceeds the free capacity, or undefined if it fits or the capacity is unknown. */
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
  /** The device is expanded but the file system is not, and the claim does not have the condition for the node yet. */
  | { readonly do: 'requestNodeExpansion' }
  /** Wait for `afterMs`, or if it is absent, until an event triggers a reconcile. */
  | { readonly do: 'wait'; readonly message: string; readonly afterMs?: number }
  /** Wait until no pod uses the volume. */
  | { readonly do: 'waitForPods' }
  /** The claim requests no more than its capacity. `volumeSize` is the size to restore in the volume object. */
  | { readonly do: 'cancel'; readonly volumeSize?: string }
  /** Reject the size without calling the driver. */
  | { readonly do: 'reject'; readonly target: string; readonly message: string; readonly reason?: string }
  | { readonly do: 'expand'; readonly target: string; readonly attempt: Attempt }

/**
 *   first     a size other than the allocated one, or any size without a resize state
 *   retry     the allocated size in the state ControllerResizeInfeasible
 *   resume    the allocated size in any other resize state, including NodeResizeInfeasible
 */
export type Attempt = 'first' | 'retry' | 'resume'

const NOTHING: ExpansionStep = { do: 'nothing' }
/** The largest size in a CSI message (int64). */
const BYTES_MAX = 2n ** 63n - 1n

export function planExpansion(situation: Situation): ExpansionStep {
  const { claim, volume } = situation
  const [claimSize, volumeSize] = [claimCapacity(claim), volumeCapacity(volume)]
  if (annotationOf(volume, PRE_RESIZE_CAPACITY) !== undefined && !isLess(claimSize, volumeSize))
    return { do: 'removeAnnotation' }
  if (claim.metadata.deletionTimestamp) return NOTHING
  if (hasStaleStatus(situation)) return { do: 'clearStatus' }
  if (isPartlyExpanded(situation)) return { do: 'requestNodeExpansion' }
  return isLess(claimSize, requestedStorage(claim)) ? planGrowth(situation) : planSatisfied(situation)
}

/** Whether the status belongs to an expansion that has ended. A failure is saved without preconditions, possibly late. */
function hasStaleStatus({ claim, volume }: Situation): boolean {
  const [claimSize, allocatedSize, state] = [claimCapacity(claim), allocatedStorage(claim), resizeStateOf(claim)]
  if (isLess(claimSize, volumeCapacity(volume))) return false
  if (state === undefined) return !isLess(claimSize, requestedStorage(claim)) && hasError(claim)
  return state.startsWith('Node') && allocatedSize !== undefined && !isLess(claimSize, allocatedSize)
}

/** Whether an earlier claim left the device expanded but not the file system, and this claim has no expansion of its own. */
function isPartlyExpanded({ claim, volume }: Situation): boolean {
  const volumeSize = volumeCapacity(volume)
  return (
    annotationOf(volume, PRE_RESIZE_CAPACITY) !== undefined &&
    resizeStateOf(claim) === undefined &&
    allocatedStorage(claim) === undefined &&
    isLess(claimCapacity(claim), volumeSize) &&
    isLess(requestedStorage(claim), volumeSize) &&
    resizeCondition(claim, 'FileSystemResizePending') === undefined
  )
}

export const hasError = (claim: Situation['claim']): boolean =>
  resizeCondition(claim, 'ControllerResizeError') !== undefined ||
  resizeCondition(claim, 'NodeResizeError') !== undefined

/** Plans a claim that has at least the requested size. An expansion that is still in progress is cancelled if possible. */
function planSatisfied(situation: Situation): ExpansionStep {
  const { claim, volume, isNodeOnly } = situation
  const [claimSize, volumeSize] = [claimCapacity(claim), volumeCapacity(volume)]
  switch (resizeStateOf(claim)) {
    case 'ControllerResizeInfeasible':
      return { do: 'cancel' }
    case 'ControllerResizeInProgress':
      // The write of the volume succeeded but that of the claim did not, so the expansion can only be finished.
      return isLess(claimSize, volumeSize) ? planCall(volumeSize, situation) : { do: 'cancel' }
    case 'NodeResizeInfeasible':
      // An expanded device cannot shrink. A node-only driver has not expanded the device.
      if (!isNodeOnly) return NOTHING
      return isLess(claimSize, volumeSize) ? { do: 'cancel', volumeSize: claimSize } : { do: 'cancel' }
    default:
      return NOTHING
  }
}

function planGrowth(situation: Situation): ExpansionStep {
  const { claim, volume, isNodeOnly } = situation
  const sizes = {
    requestedSize: requestedStorage(claim),
    allocatedSize: allocatedStorage(claim),
    volumeSize: volumeCapacity(volume),
    state: resizeStateOf(claim),
    isWaitingForNode: resizeCondition(claim, 'FileSystemResizePending') !== undefined,
  }
  const target = targetSizeOf(sizes, { isNodeOnly })
  return target === undefined ? NOTHING : planCall(target, situation)
}

function planCall(target: string, situation: Situation): ExpansionStep {
  const { claim } = situation
  const attempt = attemptOf(target, claim)
  if (attempt !== 'resume') {
    const rejection = rejectionOf(target, situation)
    if (rejection) {
      const isReported = resizeCondition(claim, 'ControllerResizeError')?.message === failureMessage(rejection.message)
      return isReported ? { do: 'wait', message: rejection.message } : { do: 'reject', target, ...rejection }
    }
  }
  if (situation.isBlockedByUse) return { do: 'waitForPods' }
  const afterMs = retryDelayMs(target, situation)
  if (afterMs > 0) return { do: 'wait', message: `size ${target} is infeasible; it is retried later`, afterMs }
  return { do: 'expand', target, attempt }
}

function attemptOf(target: string, claim: Situation['claim']): Attempt {
  const state = resizeStateOf(claim)
  if (state === undefined || !isEqualSize(target, allocatedStorage(claim))) return 'first'
  return state === 'ControllerResizeInfeasible' ? 'retry' : 'resume'
}

function rejectionOf(target: string, situation: Situation): { message: string; reason?: string } | undefined {
  if (quantityToBytes(target) > BYTES_MAX)
    return { message: `${target} exceeds the largest size in CSI (2^63-1 bytes)` }
  // A volume that may be larger already may have used up the free capacity itself.
  const message = situation.mayBeLarger ? undefined : situation.shortageFor(target)
  return message === undefined ? undefined : { message, reason: INSUFFICIENT_STORAGE }
}

/**
 * Returns the remaining delay of an infeasible size, or 0 if the user has edited the claim or the size was rejected only for
 * lack of free capacity.
 */
function retryDelayMs(target: string, { claim, isEdited, nowMs, slowRetryMs }: Situation): number {
  if (isEdited) return 0
  const state = resizeStateOf(claim)
  if (!state?.endsWith('Infeasible') || !isEqualSize(target, allocatedStorage(claim))) return 0
  const error = resizeCondition(claim, state === 'NodeResizeInfeasible' ? 'NodeResizeError' : 'ControllerResizeError')
  if (error?.reason === INSUFFICIENT_STORAGE) return 0
  const sinceMs = Date.parse(error?.lastProbeTime ?? error?.lastTransitionTime ?? '')
  if (Number.isNaN(sinceMs)) return 0
  return Math.min(sinceMs + slowRetryMs - nowMs, slowRetryMs) // at most one interval, even if clocks differ
}

export const isEqualSize = (a: string, b: string | undefined): boolean =>
  b !== undefined && !isLess(a, b) && !isLess(b, a)
