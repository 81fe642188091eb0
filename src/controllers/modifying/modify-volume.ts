// Calls ControllerModifyVolume: saves the target and the undo record in the claim, calls the driver, and saves the result
// in the volume and the claim, in one transaction if the server supports it. dropModification instead clears the status of
// a modification without a call.
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { operationDetailsOf } from '../../base/operation-details.ts'
import { keyOfObject } from '../../client/index.ts'
import { CsiError, goNameOf, isInfeasibleModify, isUncertain as isUncertainResponse } from '../../csi/index.ts'
import { backOff, retryAfter, stuck } from '../../runtime/index.ts'
import type { Credentials } from '../../volumes/credentials.ts'
import { metadataParameters } from '../provisioning/csi/parameters.ts'
import { changeDelayed, isInUse, type Subject } from '../volume-changes/index.ts'
import type { ModifyingContext } from './context.ts'
import { readModifyCredentials } from './credentials.ts'
import {
  classModifyStarted,
  classModifySucceeded,
  ioModifyStarted,
  ioModifySucceeded,
  modifyCanceled,
  modifyFailed,
  rollbackImpossibleMessage,
  unrestoredMessage,
} from './events.ts'
import {
  changedAttributesOf,
  desiredTargetOf,
  fingerprintOf,
  inUseMessage,
  knownAttributes,
  type ModifyCall,
} from './plan-modification.ts'
import { cancelledTargetOf, isUncertain, readSituation, type Situation } from './situation.ts'
import {
  beginPatch,
  type ChangedParts,
  changedPartsOf,
  dropPatch,
  type FailureMeaning,
  failurePatch,
  finishPatch,
  volumePatch,
} from './status-patches.ts'
import { outcomeOfWrite, recordEvent, type Step } from './step.ts'
import { formatTarget, isSameTarget } from './target.ts'
import { attributesAtCreation, extendUndo, type Undo } from './undo.ts'
import { writeStatus, writeVolumeAndStatus } from './writes.ts'

/** Retry delay if the cache does not have the latest version of the volume yet. */
const STALE_RETRY_MS = 1_000

/** A call whose target is saved in the claim. */
interface Attempt {
  readonly call: ModifyCall
  readonly changedParts: ChangedParts
  readonly situation: Situation
  readonly subject: Subject
  /** The undo record to restore if the driver reports that this call changed nothing. */
  readonly undoBefore: Undo
}

export async function modifyVolume(
  call: ModifyCall,
  situation: Situation,
  subject: Subject,
  context: ModifyingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { responses, clock, driver, election, settings } = context
  let credentials: Credentials
  try {
    credentials = await readModifyCredentials(subject, context, signal)
  } catch (error) {
    const message = `cannot modify volume to "${formatTarget(call.target)}": ${(error as Error).message}`
    recordEvent(subject, modifyFailed(message), context)
    return backOff(message)
  }

  const changedParts = changedPartsOf(situation, call)
  const undo = await buildUndo(call, situation, subject, context, signal)
  const { claim, volume } = subject
  const patch = beginPatch({ claim, situation, target: call.target, changedParts, nowMs: clock.nowMs() }, undo)
  let startedSubject = subject
  if (patch) {
    // A rollback is never throttled, because the volume may differ from the claim's status until the rollback is complete.
    // Another target for a modification in progress is not a new change.
    const isNewChange = call.purpose === 'change' && !isUncertain(situation)
    const delay = isNewChange ? context.throttle?.begin(subject) : undefined
    if (delay?.isNew) recordEvent(subject, changeDelayed(delay), context)
    if (delay) return retryAfter(delay.afterMs, delay.message)
    if (!(await isVolumeCurrent(subject, context))) {
      return retryAfter(STALE_RETRY_MS, 'the cache does not have the latest version of the volume yet')
    }
    const result = await writeStatus(subject, patch, context.saver)
    if (result.is !== 'written') return outcomeOfWrite(result)
    startedSubject = result.subject
    recordStartEvents(call, changedParts, startedSubject, context)
  }

  responses.recordUncertainCall(claim)
  election?.assertStillLeader()
  const attempt: Attempt = {
    call,
    changedParts,
    situation: await readSituation(startedSubject, context),
    subject: startedSubject,
    undoBefore: patch ? changedAttributesOf(situation) : undo,
  }
  try {
    const metadata = settings.extraModifyMetadata ? metadataParameters(claim, volume.metadata.name) : {}
    const request = {
      volumeId: context.volumeIdOf(volume),
      secrets: { ...credentials },
      mutableParameters: { ...call.attributes, ...metadata },
    }
    await driver.controller.controllerModifyVolume(request, { timeoutMs: settings.timeoutMs, signal })
  } catch (error) {
    if (signal.aborted) return backOff('stopped during the driver call')
    if (!(error instanceof CsiError)) throw error
    countCall(attempt, goNameOf(error.codeName), context)
    return saveFailure(attempt, error, context)
  }
  countCall(attempt, 'OK', context)
  return saveSuccess(attempt, context)
}

/** Whether the cached volume is up to date. An undo record that is built from a stale volume would restore wrong attributes. */
async function isVolumeCurrent({ volume }: Subject, { client }: ModifyingContext): Promise<boolean> {
  const { name, resourceVersion } = volume.metadata
  return (await client.get(persistentVolumeKind, { name })).metadata.resourceVersion === resourceVersion
}

/** Builds the undo record of a call. Reads the storage class only if a previous value is not known otherwise. */
async function buildUndo(
  { attributes }: ModifyCall,
  situation: Situation,
  { volume }: Subject,
  { settings, readStorageClass }: ModifyingContext,
  signal: AbortSignal,
): Promise<Undo> {
  const recordedUndo = changedAttributesOf(situation)
  const currentAttributes = knownAttributes(situation)
  const isKnown = Object.keys(attributes).every(
    (key) => Object.hasOwn(recordedUndo, key) || Object.hasOwn(currentAttributes, key),
  )
  const className = volume.spec?.storageClassName
  const storageClass = isKnown || !className ? undefined : await readStorageClass(className, signal)
  return extendUndo(attributes, recordedUndo, {
    ...settings.defaults,
    ...attributesAtCreation(storageClass?.parameters),
    ...currentAttributes,
  })
}

async function saveSuccess(attempt: Attempt, context: ModifyingContext): Promise<Step> {
  const { call, changedParts, situation, subject } = attempt
  const { claim, volume } = subject
  const input = { claim, situation, target: call.target, changedParts, nowMs: context.clock.nowMs() }
  const { reportsIo } = situation
  const annotations = context.throttle?.recordChange(subject)
  const newVolume = volumePatch(volume, call, reportsIo, knownAttributes(situation), annotations)
  const result = await writeVolumeAndStatus(subject, newVolume, finishPatch(input, call), context.saver)
  if (result.is !== 'written') return outcomeOfWrite(result)
  context.responses.recordFinalResponse(claim)
  recordEndEvents(attempt, context)
  return { is: 'changed', subject: result.subject }
}

/** Failures that leave the volume unchanged. */
const UNCHANGED_VOLUME: readonly FailureMeaning[] = ['infeasible', 'inUse', 'missing']

async function saveFailure(attempt: Attempt, error: CsiError, context: ModifyingContext): Promise<Step> {
  const { call, changedParts, situation, subject, undoBefore } = attempt
  const { responses, clock, settings, pods } = context
  const { claim } = subject
  const meaning = meaningOf(error, attempt)
  const message = error.rpcText
  if (meaning === 'missing' && call.purpose === 'cancel') {
    // The driver does not have the volume, so there is nothing to restore and a retry cannot succeed.
    recordEvent(
      subject,
      modifyFailed(`${message}. ${rollbackImpossibleMessage(subject.volume.metadata.name)}`),
      context,
    )
    return dropModification({ situation, subject, unrestoredAttributes: [] }, context)
  }
  const isBlockedByUse = meaning === 'inUse' && pods !== undefined && isInUse(keyOfObject(claim), pods)
  const isStillModifying = meaning === 'uncertain' && changedParts.className !== undefined
  const suffix = isBlockedByUse
    ? `. ${inUseMessage(situation)}`
    : isStillModifying
      ? `. Still modifying to VAC ${changedParts.className}`
      : ''
  if (meaning === 'infeasible') responses.recordRejection(claim, fingerprintOf(call), settings.slowRetryMs)
  else if (meaning === 'inUse') responses.recordInUseRejection(claim)
  else if (meaning !== 'uncertain') responses.recordFinalResponse(claim)

  const input = { claim, situation, target: call.target, changedParts, nowMs: clock.nowMs() }
  const patch = failurePatch(input, {
    meaning,
    reason: goNameOf(error.codeName),
    message: error.message,
    undo: UNCHANGED_VOLUME.includes(meaning) ? undoBefore : (situation.undo ?? {}),
  })
  recordEvent(subject, modifyFailed(message + suffix), context)
  // If a pod starts to use the volume later, the reason changes and is reported.
  if (meaning === 'inUse') responses.recordReportedMessage(claim, isBlockedByUse ? inUseMessage(situation) : message)
  let currentSubject = subject
  if (patch) {
    const result = await writeStatus(subject, patch, context.saver)
    if (result.is !== 'written') return outcomeOfWrite(result)
    currentSubject = result.subject
  }
  const isOutdated = !isSameTarget(call.target, desiredTargetOf(situation))
  if (isOutdated) return { is: 'changed', subject: currentSubject } // the request has changed: plan again
  const details = operationDetailsOf(error)
  if (isBlockedByUse) return stuck(message + suffix, details)
  return meaning === 'infeasible'
    ? retryAfter(settings.slowRetryMs, message, details)
    : backOff(message + suffix, details)
}

function meaningOf(error: CsiError, { call, changedParts }: Attempt): FailureMeaning {
  const hasAmounts = call.target.iops !== undefined || call.target.throughput !== undefined
  if (isInfeasibleModify(error) || (hasAmounts && error.codeName === 'OUT_OF_RANGE')) return 'infeasible'
  if (changedParts.io.length > 0 && error.codeName === 'FAILED_PRECONDITION') return 'inUse'
  if (error.codeName === 'NOT_FOUND') return 'missing'
  return isUncertainResponse(error) ? 'uncertain' : 'final'
}

function recordStartEvents(
  { target }: ModifyCall,
  { className, io }: ChangedParts,
  subject: Subject,
  context: ModifyingContext,
): void {
  const claimName = subject.claim.metadata.name
  if (className !== undefined) recordEvent(subject, classModifyStarted(claimName, className), context)
  if (io.length > 0) recordEvent(subject, ioModifyStarted(claimName, target, io), context)
}

function recordEndEvents({ call, changedParts, situation, subject }: Attempt, context: ModifyingContext): void {
  const { className, io } = changedParts
  const claimName = subject.claim.metadata.name
  if (className !== undefined) recordEvent(subject, classModifySucceeded(claimName, className), context)
  if (io.length > 0) recordEvent(subject, ioModifySucceeded(claimName, call.target, io), context)
  if (className === undefined && io.length === 0)
    recordEvent(subject, modifyCanceled(cancelledTargetOf(situation)), context)
  if (call.unrestoredAttributes.length > 0)
    recordEvent(subject, modifyFailed(unrestoredMessage(call.unrestoredAttributes)), context)
}

interface DroppedModification {
  readonly situation: Situation
  readonly subject: Subject
  readonly unrestoredAttributes: readonly string[]
}

/** Clears the status of a modification without a call. */
export async function dropModification(
  { situation, subject, unrestoredAttributes }: DroppedModification,
  context: ModifyingContext,
): Promise<Step> {
  const patch = dropPatch(subject.claim, situation, unrestoredAttributes, context.clock.nowMs())
  const result = await writeStatus(subject, patch, context.saver)
  if (result.is !== 'written') return outcomeOfWrite(result)
  context.responses.recordFinalResponse(subject.claim)
  recordEvent(subject, modifyCanceled(cancelledTargetOf(situation)), context)
  if (unrestoredAttributes.length > 0)
    recordEvent(subject, modifyFailed(unrestoredMessage(unrestoredAttributes)), context)
  return { is: 'changed', subject: result.subject }
}

function countCall({ changedParts, situation }: Attempt, code: string, { metrics, facts }: ModifyingContext): void {
  const isAboutClass = changedParts.className !== undefined || situation.classStatus !== undefined
  metrics?.countCall({ driverName: facts.name, isAboutClass, isAboutIo: changedParts.io.length > 0, code })
}
