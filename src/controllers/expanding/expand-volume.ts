// Calls ControllerExpandVolume and saves the result. Intent before effect: the claim's status names the size before the
// call, so that after a crash the next process repeats the call until it has a final response.
//
//   response                     the claim's status                           retry
//   OK                           NodeResizePending, or expanded               none
//   OK, but too small            ControllerResizeInfeasible, error condition  after slowRetryMs
//   infeasible                   ControllerResizeInfeasible, error condition  after slowRetryMs
//   other final error            error condition                              with backoff
//   uncertain error or timeout   unchanged                                    with backoff, for the same size

import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { ApiError, isConflict } from '../../api/status-error.ts'
import { type CommitWrite, keyOfObject, refOfKey } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain, redactCredentials } from '../../csi/index.ts'
import { backOff, NotLeaderError, retryAfter, stuck } from '../../runtime/index.ts'
import { type Credentials, readCredentials } from '../../volumes/credentials.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  completedPatch,
  failedPatch,
  failureMessage,
  formatTime,
  infeasiblePatch,
  nodePendingPatch,
  resizeStateOf,
  restartedPatch,
  startedPatch,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, volumeCapacity } from '../../volumes/sizes.ts'
import { AttachError } from '../attaching/attacher/attach-error.ts'
import { buildPublishRequest } from '../attaching/attacher/publish-request.ts'
import { changeDelayed, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { failedText, needsNode, resized, resizeFailed, resizing } from './events.ts'
import type { Attempt } from './plan-expansion.ts'
import { changed, type Step, tried } from './step.ts'
import { claimWrite, saveClaim, unconditionalClaimWrite, volumeWrite } from './writes.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface ExpansionTarget {
  readonly target: string
  readonly attempt: Attempt
}

export async function expandVolume(
  { claim: before, volume }: Subject,
  { target, attempt }: ExpansionTarget,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { clock, events, responses, facts } = context
  const volumeName = keyOfObject(volume)
  let request: ExpandRequest
  try {
    request = await buildRequest(volume, target, context, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const because = (error as Error).message
    events.record(persistentVolumeClaimKind, before, resizeFailed(failedText(volumeName, facts.name, because)))
    return error instanceof AttachError ? stuck(because) : tried(target, because)
  }

  const delay = attempt === 'first' ? context.throttle?.begin({ claim: before, volume }) : undefined
  if (delay?.isNew) events.record(persistentVolumeClaimKind, before, changeDelayed(delay))
  if (delay) return retryAfter(delay.afterMs, delay.because)

  const now = formatTime(clock.nowMs())
  const start = { first: () => startedPatch(target, now), retry: () => restartedPatch(now), resume: undefined }[attempt]
  const claim = (start && (await saveClaim([claimWrite(before, start())], context.saver))) ?? before
  events.record(persistentVolumeClaimKind, claim, resizing(volumeName))
  responses.calling(claim, target, attempt !== 'first')
  let reply: ExpandResult
  try {
    reply = await callDriver(request, target, context, signal)
  } catch (error) {
    const because = textOf(error, request.secrets)
    return saveFailure(error, because, { claim, volume }, target, context, signal)
  }
  return saveExpanded({ claim, volume }, reply, context)
}

/**
 * Checks, before an expansion is cancelled, whether an earlier call without a response has expanded the volume after
 * all: ControllerExpandVolume with the current size returns the actual size. Undefined: not expanded, or not known.
 */
export async function findLostExpansion(
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step | undefined> {
  const { claim, volume } = subject
  if (context.isNodeOnly || context.responses.of(claim)?.possibleSize === undefined) return undefined
  const has = claimCapacity(claim)
  try {
    const reply = await callDriver(await buildRequest(volume, has, context, signal), has, context, signal)
    return isLess(has, reply.size) ? await saveExpanded(subject, reply, context) : undefined
  } catch (error) {
    const isUnrelated = signal.aborted || error instanceof NotLeaderError || error instanceof ApiError
    if (isUnrelated) throw error
    // A driver that rejects even the current size cannot report the actual one: cancel as the user requested.
    const mayRecover = error instanceof CsiError && isUncertain(error)
    return mayRecover ? backOff(`it is not known yet whether the volume was expanded: ${error.message}`) : undefined
  }
}

interface ExpandRequest {
  readonly volumeId: string
  readonly volumeCapability: ReturnType<typeof buildPublishRequest>['volumeCapability']
  readonly capacityRange: { readonly requiredBytes: bigint }
  readonly secrets: Credentials
}

interface ExpandResult {
  readonly size: string
  readonly needsNode: boolean
}

/** Throws if the request cannot be built, for example because a secret is missing. */
async function buildRequest(
  volume: Subject['volume'],
  target: string,
  { client, facts }: ExpandingContext,
  signal: AbortSignal,
): Promise<ExpandRequest> {
  const { volumeId, volumeCapability } = buildPublishRequest(volume.spec ?? {}, facts, '')
  const { namespace = '', name = '' } = volume.spec?.csi?.controllerExpandSecretRef ?? {}
  const secrets = name ? await readCredentials(client, { namespace, name }, signal) : {}
  return { volumeId, volumeCapability, capacityRange: { requiredBytes: quantityToBytes(target) }, secrets }
}

async function callDriver(
  request: ExpandRequest,
  target: string,
  { driver, isNodeOnly, settings, election }: ExpandingContext,
  signal: AbortSignal,
): Promise<ExpandResult> {
  if (isNodeOnly) return { size: target, needsNode: true }
  election?.assertStillLeader()
  const { capacityBytes, nodeExpansionRequired } = await driver.controller.controllerExpandVolume(
    { ...request, secrets: { ...request.secrets } },
    { timeoutMs: settings.timeoutMs, signal },
  )
  const { requiredBytes } = request.capacityRange
  if (capacityBytes < requiredBytes) throw new TooSmallError(capacityBytes, target)
  const size = capacityBytes === requiredBytes ? target : formatQuantity(quantityFromBytes(capacityBytes))
  return { size, needsNode: nodeExpansionRequired }
}

/** The driver returned OK with a size below the requested one. */
class TooSmallError extends Error {
  constructor(bytes: bigint, target: string) {
    super(
      `the driver reports success, but a size of ${formatQuantity(quantityFromBytes(bytes))} instead of the requested ${target}`,
    )
  }
}

function textOf(error: unknown, secrets: Credentials): string {
  const text = error instanceof CsiError ? error.rpcText : error instanceof Error ? error.message : String(error)
  return redactCredentials(text, secrets)
}

async function saveFailure(
  error: unknown,
  because: string,
  { claim, volume }: Subject,
  target: string,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { responses, events, facts, clock } = context
  if (signal.aborted || error instanceof NotLeaderError || error instanceof ApiError) throw error // not a response of the driver
  const message = failedText(keyOfObject(volume), facts.name, because)
  events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
  const isTooSmall = error instanceof TooSmallError
  if (!isTooSmall && isUncertain(error)) {
    responses.uncertain(claim, target)
    return tried(target, `${because} (the driver may still be expanding the volume)`)
  }

  const failure = { message: failureMessage(because) }
  const now = formatTime(clock.nowMs())
  const isInfeasible = isTooSmall || isInfeasibleExpand(error)
  const isInUse = error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION'
  if (isInUse) responses.rejectedInUse(claim, target)
  else responses.rejected(claim, target)
  // The device has the size already: keep the status of the node's expansion.
  const isNodes = resizeStateOf(claim)?.startsWith('Node')
  await saveClaim(
    [
      unconditionalClaimWrite(
        claim,
        isInfeasible && !isNodes ? infeasiblePatch(failure, now) : failedPatch(failure, now),
      ),
    ],
    context.saver,
  )
  return tried(target, because, { isSlow: isInfeasible })
}

/** Writes the volume first: if the claim's write fails, the controller repeats the call and gets the same result. */
async function saveExpanded({ claim, volume }: Subject, reply: ExpandResult, context: ExpandingContext): Promise<Step> {
  const { clock, events, isNodeOnly } = context
  const [recorded, before] = [volumeCapacity(volume), annotationOf(volume, PRE_RESIZE_CAPACITY)]
  // With a node-only driver the size may fall: nothing was expanded when the node rejected it. A device never shrinks.
  const size = isNodeOnly || isLess(recorded, reply.size) ? reply.size : recorded
  const isForNode = reply.needsNode && before === undefined && isLess(claimCapacity(claim), size)
  const annotations = {
    ...(isForNode ? { [PRE_RESIZE_CAPACITY]: claimCapacity(claim) } : {}),
    ...context.throttle?.recordChange({ claim, volume }),
  }
  const isVolumeChanged = isLess(recorded, size) || isLess(size, recorded) || Object.keys(annotations).length > 0
  const patch = reply.needsNode ? nodePendingPatch(formatTime(clock.nowMs())) : completedPatch(size)
  const writes = isVolumeChanged
    ? [volumeWrite(volume, { size, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) })]
    : []
  const saved = await saveDespiteEdits(claim, (now) => [...writes, claimWrite(now, patch)], context)
  if (saved) events.record(persistentVolumeClaimKind, saved, reply.needsNode ? needsNode : resized)
  return changed
}

/** Concurrent edits tolerated while a result is saved; beyond this the reconcile starts over and repeats the call. */
const EDITS_MAX = 5

/** Retries the write if a user has edited the request during the call: the driver's result is still valid. */
async function saveDespiteEdits(
  claim: Claim,
  writesFor: (now: Claim) => readonly CommitWrite[],
  context: ExpandingContext,
): Promise<Claim | undefined> {
  const { uid } = claim.metadata
  let now = claim
  for (let edits = 0; ; edits++) {
    try {
      return await saveClaim(writesFor(now), context.saver)
    } catch (error) {
      if (!isConflict(error) || edits === EDITS_MAX) throw error
      now = await context.client.get(persistentVolumeClaimKind, refOfKey(keyOfObject(claim)))
      context.claims.learn(now)
      const isSame =
        now.metadata.uid === uid &&
        resizeStateOf(now) === resizeStateOf(claim) &&
        allocatedStorage(now) === allocatedStorage(claim)
      if (!isSame) throw error
    }
  }
}
