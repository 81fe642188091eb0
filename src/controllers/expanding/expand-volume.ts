// Calls ControllerExpandVolume and saves the result; a driver that expands only on the node is not called. The requested size
// is saved in the claim's status before the call, so that after a crash the next process repeats the call until it has a final
// response.
//
//   response                     the claim's status                           retry
//   OK                           NodeResizePending, or expanded               none
//   OK, but too small            ControllerResizeInfeasible, error condition  after slowRetryMs
//   infeasible                   ControllerResizeInfeasible, error condition  after slowRetryMs
//   other final error            error condition                              with backoff
//   uncertain error or timeout   error condition from the second one on       with backoff, for the latest requested size
// While the node expands the volume, an infeasible size changes only the error condition.

import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { ApiError, isConflict } from '../../api/status-error.ts'
import { operationDetailsOf } from '../../base/operation-details.ts'
import { type CommitWrite, keyOfObject, refOfKey } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain } from '../../csi/index.ts'
import { backOff, NotLeaderError, retryAfter, stuck } from '../../runtime/index.ts'
import { growthLimitBytes } from '../../volumes/auto-grow.ts'
import { readCredentials } from '../../volumes/credentials.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  completedPatch,
  failedPatch,
  failureMessage,
  formatTime,
  infeasiblePatch,
  nodePendingPatch,
  resizeCondition,
  resizeStateOf,
  restartedPatch,
  type StatusPatch,
  startedPatch,
} from '../../volumes/resize-status.ts'
import {
  allocatedStorage,
  claimCapacity,
  isLess,
  maxQuantity,
  requestedStorage,
  volumeCapacity,
} from '../../volumes/sizes.ts'
import { AttachError } from '../attaching/attacher/attach-error.ts'
import { changeDelayed, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { nodeResizeRequired, resizeFailed, resizeFailedMessage, resizeStarted, resizeSucceeded } from './events.ts'
import type { ExpandVolumeRequest } from './expansion-driver.ts'
import type { Attempt } from './plan-expansion.ts'
import { changed, failedCall, type Step } from './step.ts'
import { claimWrite, saveClaim, unconditionalClaimWrite, volumeWrite } from './writes.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface ExpansionCall {
  readonly target: string
  readonly attempt: Attempt
}

export async function expandVolume(
  { claim: initialClaim, volume }: Subject,
  { target, attempt }: ExpansionCall,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { clock, events, records, facts } = context
  const volumeName = keyOfObject(volume)
  let request: ExpandVolumeRequest
  try {
    request = await buildRequest({ claim: initialClaim, volume }, target, context, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const message = (error as Error).message
    events.record(
      persistentVolumeClaimKind,
      initialClaim,
      resizeFailed(resizeFailedMessage(volumeName, facts.name, message)),
    )
    return error instanceof AttachError ? stuck(message) : failedCall(target, message)
  }

  const isNewChange = attempt === 'first' && !isLowered(initialClaim, target)
  const delay = isNewChange ? context.throttle?.begin({ claim: initialClaim, volume }) : undefined
  if (delay?.isNew) events.record(persistentVolumeClaimKind, initialClaim, changeDelayed(delay))
  if (delay) return retryAfter(delay.afterMs, delay.message)

  const time = formatTime(clock.nowMs())
  const buildStartPatch = {
    first: () => startedPatch(target, time),
    retry: () => restartedPatch(time),
    resume: undefined,
  }[attempt]
  const claim =
    (buildStartPatch && (await saveClaim([claimWrite(initialClaim, buildStartPatch())], context.saver))) ?? initialClaim
  events.record(persistentVolumeClaimKind, claim, resizeStarted(volumeName))
  const previousPossibleSize = records.possibleSize(initialClaim)
  records.recordCall(claim, target, previousPossibleSize)
  let result: ExpandResult
  try {
    result = await callDriver(request, target, context, signal)
  } catch (error) {
    const message = messageOf(error)
    const failure = { error, message, target, attempt, previousPossibleSize }
    return saveFailure(failure, { claim, volume }, context, signal)
  }
  return saveExpanded({ claim, volume }, result, context)
}

/**
 * Whether the request was lowered during an expansion. A lowered request continues the change in progress, so it is not
 * throttled.
 */
function isLowered(claim: Claim, target: string): boolean {
  const allocatedSize = allocatedStorage(claim)
  const isControllerState = resizeStateOf(claim)?.startsWith('ControllerResize') ?? false
  return isControllerState && allocatedSize !== undefined && isLess(target, allocatedSize)
}

/**
 * Checks, before an expansion is cancelled, whether an earlier call without a response has expanded the volume:
 * ControllerExpandVolume with the recorded size returns the actual size. Returns undefined if the volume was not expanded
 * or the driver cannot report its size.
 */
export async function findLostExpansion(
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step | undefined> {
  const { claim, volume } = subject
  const { records, isNodeOnly, saver, clock } = context
  const isSizeKnown = records.has(claim) && records.possibleSize(claim) === undefined
  if (isNodeOnly || isSizeKnown) return undefined
  const recordedSize = maxQuantity(claimCapacity(claim), volumeCapacity(volume))
  try {
    const request = await buildRequest(subject, recordedSize, context, signal)
    const result = await callDriver(request, recordedSize, context, signal)
    return isLess(recordedSize, result.size) ? await saveExpanded(subject, result, context) : undefined
  } catch (error) {
    const isUnrelated = signal.aborted || error instanceof NotLeaderError || error instanceof ApiError
    if (isUnrelated) throw error
    // A driver that keeps rejecting even the recorded size cannot report the actual one: cancel as the user requested.
    const isRejected = error instanceof CsiError && !isUncertain(error)
    if (!(error instanceof CsiError) || impliesUnexpanded(error)) return undefined
    if (isRejected && records.recordFailedSizeCheck(claim) >= SIZE_CHECKS_MAX) return undefined
    const message = `the expansion is cancelled as soon as the driver reports the volume's size: ${messageOf(error)}`
    const patch = failureReport(claim, message, clock.nowMs())
    if (patch) await saveClaim([unconditionalClaimWrite(claim, patch)], saver)
    return backOff(message, operationDetailsOf(error))
  }
}

/** After this many checks of the actual size that end with a final error, the expansion is cancelled anyway. */
const SIZE_CHECKS_MAX = 5

/** Whether the error implies that the volume was not expanded: the size or the call is not supported, or the volume is in use. */
const impliesUnexpanded = (error: CsiError): boolean =>
  isInfeasibleExpand(error) || error.codeName === 'UNIMPLEMENTED' || error.codeName === 'FAILED_PRECONDITION'

/** Returns a patch with the error condition, or undefined if the claim has it already, so that retries do not write it. */
function failureReport(claim: Claim, errorMessage: string, nowMs: number): StatusPatch | undefined {
  const message = failureMessage(errorMessage)
  const isReported = resizeCondition(claim, 'ControllerResizeError')?.message === message
  return isReported ? undefined : failedPatch({ message }, formatTime(nowMs))
}

interface ExpandResult {
  readonly size: string
  readonly needsNodeExpansion: boolean
}

/** Throws if the request cannot be built, for example because a secret is missing. */
async function buildRequest(
  { claim, volume }: Subject,
  target: string,
  { client, fieldsOf }: ExpandingContext,
  signal: AbortSignal,
): Promise<ExpandVolumeRequest> {
  const { volumeId, volumeCapability } = fieldsOf(volume)
  const { namespace = '', name = '' } = volume.spec?.csi?.controllerExpandSecretRef ?? {}
  const secrets = name ? { ...(await readCredentials(client, { namespace, name }, signal)) } : {}
  const requiredBytes = quantityToBytes(target)
  // Limit only a size that automatic growth requested. The driver may round other sizes up freely.
  const limitBytes = target === requestedStorage(claim) ? growthLimitBytes(claim) : undefined
  const capacityRange = limitBytes === undefined ? { requiredBytes } : { requiredBytes, limitBytes }
  return { volumeId, volumeCapability, capacityRange, secrets }
}

async function callDriver(
  request: ExpandVolumeRequest,
  target: string,
  { driver, isNodeOnly, settings, election }: ExpandingContext,
  signal: AbortSignal,
): Promise<ExpandResult> {
  if (isNodeOnly) return { size: target, needsNodeExpansion: true }
  election?.assertStillLeader()
  const { capacityBytes, nodeExpansionRequired } = await driver.controller.controllerExpandVolume(request, {
    timeoutMs: settings.timeoutMs,
    signal,
  })
  const { requiredBytes } = request.capacityRange
  if (capacityBytes < requiredBytes) throw new TooSmallError(capacityBytes, target)
  const size = capacityBytes === requiredBytes ? target : formatQuantity(quantityFromBytes(capacityBytes))
  return { size, needsNodeExpansion: nodeExpansionRequired }
}

/** The driver returned OK with a size that is smaller than the requested size. */
class TooSmallError extends Error {
  constructor(bytes: bigint, target: string) {
    super(
      `the driver reports success, but a size of ${formatQuantity(quantityFromBytes(bytes))} instead of the requested ${target}`,
    )
  }
}

function messageOf(error: unknown): string {
  return error instanceof CsiError ? error.rpcText : error instanceof Error ? error.message : String(error)
}

interface CallFailure extends ExpansionCall {
  readonly error: unknown
  readonly message: string
  /** The size that the volume may have had before the call (ExpansionRecords). */
  readonly previousPossibleSize: string | undefined
}

async function saveFailure(
  { error, message: errorMessage, target, attempt, previousPossibleSize }: CallFailure,
  { claim, volume }: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { records, events, facts, clock, saver } = context
  if (signal.aborted || error instanceof NotLeaderError || error instanceof ApiError) throw error // not a response of the driver
  const message = resizeFailedMessage(keyOfObject(volume), facts.name, errorMessage)
  events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
  const isTooSmall = error instanceof TooSmallError
  if (!isTooSmall && isUncertain(error)) {
    // A single uncertain error is normal when a driver restarts, so only a repeated one is reported.
    const patch = attempt === 'first' ? undefined : failureReport(claim, errorMessage, clock.nowMs())
    if (patch) await saveClaim([unconditionalClaimWrite(claim, patch)], saver)
    return failedCall(target, `${errorMessage} (the driver may still be expanding the volume)`, { error })
  }

  const failure = { message: failureMessage(errorMessage) }
  const time = formatTime(clock.nowMs())
  const isInfeasible = isTooSmall || isInfeasibleExpand(error)
  const isInUse = error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION'
  records.recordRejection(claim, previousPossibleSize, { isInUse })
  // The device has the size already, so keep the node expansion's status.
  const isNodeState = resizeStateOf(claim)?.startsWith('Node')
  await saveClaim(
    [
      unconditionalClaimWrite(
        claim,
        isInfeasible && !isNodeState ? infeasiblePatch(failure, time) : failedPatch(failure, time),
      ),
    ],
    saver,
  )
  return failedCall(target, errorMessage, { isSlow: isInfeasible, error })
}

/** Writes the volume first. If the write of the claim fails, the controller repeats the call with the same result. */
async function saveExpanded(
  { claim, volume }: Subject,
  result: ExpandResult,
  context: ExpandingContext,
): Promise<Step> {
  const { clock, events, isNodeOnly, records } = context
  const [oldSize, preResizeSize] = [volumeCapacity(volume), annotationOf(volume, PRE_RESIZE_CAPACITY)]
  // A device never shrinks. With a node-only driver the size may decrease, because a node that rejects it expands nothing.
  const size = isNodeOnly || isLess(oldSize, result.size) ? result.size : oldSize
  const needsAnnotation = result.needsNodeExpansion && preResizeSize === undefined && isLess(claimCapacity(claim), size)
  const annotations = {
    ...(needsAnnotation ? { [PRE_RESIZE_CAPACITY]: claimCapacity(claim) } : {}),
    ...context.throttle?.recordChange({ claim, volume }),
  }
  const isVolumeChanged = isLess(oldSize, size) || isLess(size, oldSize) || Object.keys(annotations).length > 0
  const allocatedSize = isFromEarlierRequest(claim, size) ? size : undefined
  const patch = result.needsNodeExpansion
    ? nodePendingPatch(formatTime(clock.nowMs()), allocatedSize)
    : completedPatch(size, allocatedSize)
  const writes = isVolumeChanged
    ? [volumeWrite(volume, { size, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) })]
    : []
  const savedClaim = await saveDespiteEdits(
    claim,
    (currentClaim) => [...writes, claimWrite(currentClaim, patch)],
    context,
  )
  records.recordSuccess(claim)
  if (savedClaim)
    events.record(
      persistentVolumeClaimKind,
      savedClaim,
      result.needsNodeExpansion ? nodeResizeRequired : resizeSucceeded,
    )
  return changed
}

/** Whether the volume's size results from an earlier, larger request: only the high-water mark covers that size. */
function isFromEarlierRequest(claim: Claim, size: string): boolean {
  const highWaterMark = claim.spec?.allocatedResources?.storage
  return highWaterMark !== undefined && !isLess(highWaterMark, size) && isLess(allocatedStorage(claim) ?? size, size)
}

/** Maximum number of edits while a result is saved. After more edits the reconcile starts again and repeats the call. */
const EDITS_MAX = 5

/** Retries the write if a user edited the request during the call, because the driver's result is still valid. */
async function saveDespiteEdits(
  claim: Claim,
  writesFor: (currentClaim: Claim) => readonly CommitWrite[],
  context: ExpandingContext,
): Promise<Claim | undefined> {
  const { uid } = claim.metadata
  let currentClaim = claim
  for (let edits = 0; ; edits++) {
    try {
      return await saveClaim(writesFor(currentClaim), context.saver)
    } catch (error) {
      if (!isConflict(error) || edits === EDITS_MAX) throw error
      currentClaim = await context.client.get(persistentVolumeClaimKind, refOfKey(keyOfObject(claim)))
      context.claims.applyWriteResult(currentClaim)
      const isSameExpansion =
        currentClaim.metadata.uid === uid &&
        resizeStateOf(currentClaim) === resizeStateOf(claim) &&
        allocatedStorage(currentClaim) === allocatedStorage(claim)
      if (!isSameExpansion) throw error
    }
  }
}
