// What the growth of a claim's volume needs next. Pure: claim, volume and what is known about the driver's answers in,
// one step out. Which size is asked for is target-size.ts; taking the step is reconcile-claim.ts.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import { failureText, INSUFFICIENT_STORAGE, resizeCondition, resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage, volumeCapacity } from '../../volumes/sizes.ts'
import { targetOf } from './target-size.ts'

export interface Situation {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly volume: Readonly<PersistentVolume>
  /** The driver's last answer to the size in the claim's allocatedResources was a final no, and nothing was asked since. */
  readonly isFinal: boolean
  /** It refused because the volume was in use, and it still is. */
  readonly isHeldByUse: boolean
  /** The driver grows volumes on their nodes only. */
  readonly isNodeOnly: boolean
  /** Why a size does not fit, where free storage is known. */
  shortageFor(target: string): string | undefined
  readonly nowMs: number
  /** Between two tries for a size that was refused. */
  readonly slowMs: number
}

export type ExpansionStep =
  | { readonly do: 'nothing' }
  /** The node is done with what the annotation on the volume was for. */
  | { readonly do: 'tidy' }
  /** What is said of a growth is of one that is over. */
  | { readonly do: 'clear' }
  /** The device is as large as it has to be; what is on it has yet to follow, and the claim does not say so. */
  | { readonly do: 'leaveToNode' }
  /** Without a time: until something changes. */
  | { readonly do: 'wait'; readonly because: string; readonly afterMs?: number }
  /** Until no pod uses the volume. */
  | { readonly do: 'hold' }
  /** The user wants no more than there is. `volumeSize`: what the volume is to say, where it said too much. */
  | { readonly do: 'cancel'; readonly volumeSize?: string }
  /** The driver need not be asked. */
  | { readonly do: 'refuse'; readonly target: string; readonly because: string; readonly reason?: string }
  | { readonly do: 'expand'; readonly target: string; readonly begins: Beginning }

/**
 *   anew      a size that was not asked for before
 *   again     one that was refused
 *   goesOn    one whose asking the claim already tells of
 */
export type Beginning = 'anew' | 'again' | 'goesOn'

const NOTHING: ExpansionStep = { do: 'nothing' }
/** What the protocol can say. */
const BYTES_MAX = 2n ** 63n - 1n

export function planExpansion(situation: Situation): ExpansionStep {
  const { claim, volume } = situation
  const [cap, pvcap] = [claimCapacity(claim), volumeCapacity(volume)]
  if (annotationOf(volume, PRE_RESIZE_CAPACITY) !== undefined && !isLess(cap, pvcap)) return { do: 'tidy' }
  if (claim.metadata.deletionTimestamp) return NOTHING
  if (isToldLate(situation)) return { do: 'clear' }
  if (isHalfGrown(situation)) return { do: 'leaveToNode' }
  return isLess(cap, requestedStorage(claim)) ? planGrowth(situation) : planEnough(situation)
}

/** How a growth failed is told whatever became of the claim meanwhile, and so may be told when it is over. */
function isToldLate({ claim, volume }: Situation): boolean {
  const [cap, alloc, state] = [claimCapacity(claim), allocatedStorage(claim), resizeStateOf(claim)]
  if (isLess(cap, volumeCapacity(volume))) return false
  if (state === undefined) return !isLess(cap, requestedStorage(claim)) && hasError(claim)
  return state.startsWith('Node') && alloc !== undefined && !isLess(cap, alloc)
}

/** The claim that it grew for let it go before its node had done its part; the one that has it now begins there. */
function isHalfGrown({ claim, volume }: Situation): boolean {
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

/** The claim has what it asks for. What was begun before the request was lowered is ended or undone. */
function planEnough(situation: Situation): ExpansionStep {
  const { claim, volume, isFinal, isNodeOnly } = situation
  const [cap, alloc] = [claimCapacity(claim), allocatedStorage(claim)]
  switch (resizeStateOf(claim)) {
    case 'ControllerResizeInfeasible':
      return { do: 'cancel' }
    case 'ControllerResizeInProgress':
      if (isFinal || alloc === undefined || !isLess(cap, alloc)) return { do: 'cancel' }
      return planAsking(alloc, situation) // it may have that size by now: only the same request tells
    case 'NodeResizeInfeasible':
      // Where a device has grown there is no way back; a node that grows it all has grown nothing.
      if (!isNodeOnly) return NOTHING
      return isLess(cap, volumeCapacity(volume)) ? { do: 'cancel', volumeSize: cap } : { do: 'cancel' }
    default:
      return NOTHING
  }
}

function planGrowth(situation: Situation): ExpansionStep {
  const { claim, volume, isFinal, isNodeOnly } = situation
  const sizes = {
    req: requestedStorage(claim),
    alloc: allocatedStorage(claim),
    pvcap: volumeCapacity(volume),
    state: resizeStateOf(claim),
    isWaitingForNode: resizeCondition(claim, 'FileSystemResizePending') !== undefined,
  }
  const target = targetOf(sizes, { isFinal, isNodeOnly })
  return target === undefined ? NOTHING : planAsking(target, situation)
}

function planAsking(target: string, situation: Situation): ExpansionStep {
  const { claim } = situation
  const begins = beginningOf(target, claim)
  if (begins !== 'goesOn') {
    const refusal = refusalOf(target, situation)
    if (refusal) {
      const isSaid =
        begins === 'again' && resizeCondition(claim, 'ControllerResizeError')?.message === failureText(refusal.because)
      return isSaid ? { do: 'wait', because: refusal.because } : { do: 'refuse', target, ...refusal }
    }
  }
  if (situation.isHeldByUse) return { do: 'hold' }
  const afterMs = slowLeftMs(target, situation)
  if (afterMs > 0) return { do: 'wait', because: `the driver refused ${target}; it is asked again later`, afterMs }
  return { do: 'expand', target, begins }
}

function beginningOf(target: string, claim: Situation['claim']): Beginning {
  const state = resizeStateOf(claim)
  if (state === undefined || !isSame(target, allocatedStorage(claim))) return 'anew'
  return state === 'ControllerResizeInfeasible' ? 'again' : 'goesOn'
}

function refusalOf(target: string, situation: Situation): { because: string; reason?: string } | undefined {
  if (quantityToBytes(target) > BYTES_MAX) return { because: `${target} is more than any volume can have` }
  const because = situation.shortageFor(target)
  return because === undefined ? undefined : { because, reason: INSUFFICIENT_STORAGE }
}

/** How long a size that was refused, by the driver or by the node, has to wait. Whoever waits for room does not. */
function slowLeftMs(target: string, { claim, nowMs, slowMs }: Situation): number {
  const state = resizeStateOf(claim)
  if (!state?.endsWith('Infeasible') || !isSame(target, allocatedStorage(claim))) return 0
  const error = resizeCondition(claim, state === 'NodeResizeInfeasible' ? 'NodeResizeError' : 'ControllerResizeError')
  if (error?.reason === INSUFFICIENT_STORAGE) return 0
  const sinceMs = Date.parse(error?.lastProbeTime ?? error?.lastTransitionTime ?? '')
  if (Number.isNaN(sinceMs)) return 0
  return Math.min(sinceMs + slowMs - nowMs, slowMs) // clocks differ, but nobody waits for more than one interval
}

const isSame = (a: string, b: string | undefined): boolean => b !== undefined && !isLess(a, b) && !isLess(b, a)
