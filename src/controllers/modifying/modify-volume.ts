// Calls ControllerModifyVolume: writes intent and undo record to the claim, calls the driver, and saves the result on
// volume and claim. Three writes on success, the last two as one transaction where the server supports it.
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import {
  CsiError,
  goNameOf,
  isInfeasibleModify,
  isUncertain as isUncertainResponse,
  redactCredentials,
} from '../../csi/index.ts'
import { backOff, retryAfter, stuck } from '../../runtime/index.ts'
import type { Credentials } from '../../volumes/credentials.ts'
import { createMetadata } from '../provisioning/csi/parameters.ts'
import { changeDelayed, isInUse, type Subject } from '../volume-changes/index.ts'
import type { ModifyingContext } from './context.ts'
import { modifyCredentials } from './credentials.ts'
import {
  canceled,
  changedClass,
  changedIo,
  changingClass,
  changingIo,
  modifyFailed,
  tooLateToCancel,
} from './events.ts'
import { fingerprintOf, goalOf, heldByUse, knownAttributes, type ModifyCall } from './plan-modification.ts'
import { type Situation, situationOf } from './situation.ts'
import {
  beginPatch,
  type Concern,
  concernOf,
  type FailureMeaning,
  failurePatch,
  finishPatch,
  volumePatch,
} from './status-patches.ts'
import { afterWrite, recordEvent, type Step } from './step.ts'
import { sameTarget, targetText } from './target.ts'
import { provisionedWith, type Undo, undoFor } from './undo.ts'
import { writeBoth, writeStatus } from './writes.ts'

/** Delay until the cache has most likely received a change that the server already has. */
const STALE_RETRY_MS = 1_000

/** One call, after its intent was written to the claim. */
interface Attempt {
  readonly call: ModifyCall
  readonly concern: Concern
  readonly situation: Situation
  readonly subject: Subject
  readonly credentials: Credentials
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
    credentials = await modifyCredentials(subject, context, signal)
  } catch (error) {
    const because = `cannot modify volume to "${targetText(call.target)}": ${(error as Error).message}`
    recordEvent(subject, modifyFailed(because), context)
    return backOff(because)
  }

  const concern = concernOf(situation, call)
  const undo = await undoOfAttempt(call, situation, subject, context, signal)
  const { claim, volume } = subject
  const patch = beginPatch({ claim, situation, target: call.target, concern, nowMs: clock.nowMs() }, undo)
  let begun = subject
  if (patch) {
    // A rollback is never throttled: until it is done, the volume differs from its status.
    const delay = call.purpose === 'change' ? context.throttle?.begin(subject) : undefined
    if (delay?.isNew) recordEvent(subject, changeDelayed(delay), context)
    if (delay) return retryAfter(delay.afterMs, delay.because)
    if (!(await isVolumeCurrent(subject, context))) {
      return retryAfter(STALE_RETRY_MS, 'the cache does not have the latest version of the volume yet')
    }
    const written = await writeStatus(subject, patch, context.saver)
    if (written.is !== 'written') return afterWrite(written)
    begun = written.subject
    recordStarted(call, concern, begun, context)
  }

  responses.uncertain(claim)
  election?.assertStillLeader()
  const own: Attempt = {
    call,
    concern,
    situation: await situationOf(begun, context),
    subject: begun,
    credentials,
    undoBefore: patch ? (situation.undo ?? {}) : undo,
  }
  try {
    const metadata = settings.extraModifyMetadata ? createMetadata(claim, volume.metadata.name) : {}
    const request = {
      volumeId: volume.spec?.csi?.volumeHandle ?? '',
      secrets: { ...credentials },
      mutableParameters: { ...call.attributes, ...metadata },
    }
    await driver.controller.controllerModifyVolume(request, { timeoutMs: settings.timeoutMs, signal })
  } catch (error) {
    if (signal.aborted) return backOff('stopped during the driver call')
    if (!(error instanceof CsiError)) throw error
    count(own, goNameOf(error.codeName), context)
    return failed(own, error, context)
  }
  count(own, 'OK', context)
  return finished(own, context)
}

/** The undo record is built from the cached volume: a stale one would restore wrong attributes. */
async function isVolumeCurrent({ volume }: Subject, { client }: ModifyingContext): Promise<boolean> {
  const { name, resourceVersion } = volume.metadata
  return (await client.get(persistentVolumeKind, { name })).metadata.resourceVersion === resourceVersion
}

/** The undo record of a call. Reads the storage class only if neither volume nor claim has the previous values. */
async function undoOfAttempt(
  { attributes }: ModifyCall,
  situation: Situation,
  { volume }: Subject,
  { settings, storageClass }: ModifyingContext,
  signal: AbortSignal,
): Promise<Undo> {
  const recorded = situation.undo ?? {}
  const known = knownAttributes(situation)
  const isKnown = Object.keys(attributes).every((key) => Object.hasOwn(recorded, key) || Object.hasOwn(known, key))
  const className = volume.spec?.storageClassName
  const made = isKnown || !className ? undefined : await storageClass(className, signal)
  return undoFor(attributes, recorded, { ...settings.defaults, ...provisionedWith(made?.parameters), ...known })
}

async function finished(own: Attempt, context: ModifyingContext): Promise<Step> {
  const { call, concern, situation, subject } = own
  const { claim, volume } = subject
  const step = { claim, situation, target: call.target, concern, nowMs: context.clock.nowMs() }
  const ofVolume = volumePatch(volume, call, knownAttributes(situation), context.throttle?.recordChange(subject))
  const written = await writeBoth(subject, ofVolume, finishPatch(step, call), context.saver)
  if (written.is !== 'written') return afterWrite(written)
  context.responses.final(claim)
  recordFinished(own, context)
  return { is: 'changed', subject: written.subject }
}

/** Failures after which the volume is unchanged. */
const CHANGED_NOTHING: readonly FailureMeaning[] = ['infeasible', 'inUse']

async function failed(own: Attempt, error: CsiError, context: ModifyingContext): Promise<Step> {
  const { call, concern, situation, subject, credentials, undoBefore } = own
  const { responses, clock, settings, pods } = context
  const { claim } = subject
  const meaning = meaningOf(error, own)
  const text = redactCredentials(error.rpcText, credentials)
  const isHeld = meaning === 'inUse' && pods !== undefined && isInUse(keyOfObject(claim), pods)
  const isStill = meaning === 'uncertain' && concern.className !== undefined
  const next = isHeld ? `. ${heldByUse(situation)}` : isStill ? `. Still modifying to VAC ${concern.className}` : ''
  if (meaning === 'infeasible') responses.reject(claim, fingerprintOf(call), settings.slowRetryMs)
  else if (meaning === 'inUse') responses.rejectInUse(claim)
  else if (meaning !== 'uncertain') responses.final(claim)

  const step = { claim, situation, target: call.target, concern, nowMs: clock.nowMs() }
  const patch = failurePatch(step, {
    meaning,
    reason: goNameOf(error.codeName),
    message: redactCredentials(error.message, credentials),
    undo: CHANGED_NOTHING.includes(meaning) ? undoBefore : (situation.undo ?? {}),
  })
  recordEvent(subject, modifyFailed(text + next), context)
  // If a pod starts to use the volume later, the reason differs and is reported.
  if (meaning === 'inUse') responses.report(claim, isHeld ? heldByUse(situation) : text)
  let left = subject
  if (patch) {
    const written = await writeStatus(subject, patch, context.saver)
    if (written.is !== 'written') return afterWrite(written)
    left = written.subject
  }
  const isOutdated = !sameTarget(call.target, goalOf(situation))
  if (isOutdated && meaning !== 'uncertain') return { is: 'changed', subject: left } // the request has changed: plan again
  if (isHeld) return stuck(text + next)
  return meaning === 'infeasible' ? retryAfter(settings.slowRetryMs, text) : backOff(text + next)
}

function meaningOf(error: CsiError, { call, concern }: Attempt): FailureMeaning {
  const hasAmounts = call.target.iops !== undefined || call.target.throughput !== undefined
  if (isInfeasibleModify(error) || (hasAmounts && error.codeName === 'OUT_OF_RANGE')) return 'infeasible'
  if (concern.io.length > 0 && error.codeName === 'FAILED_PRECONDITION') return 'inUse'
  return isUncertainResponse(error) ? 'uncertain' : 'final'
}

function recordStarted(
  { target }: ModifyCall,
  { className, io }: Concern,
  subject: Subject,
  context: ModifyingContext,
): void {
  const claimName = subject.claim.metadata.name
  if (className !== undefined) recordEvent(subject, changingClass(claimName, className), context)
  if (io.length > 0) recordEvent(subject, changingIo(claimName, target, io), context)
}

function recordFinished({ call, concern, situation, subject }: Attempt, context: ModifyingContext): void {
  const { className, io } = concern
  const claimName = subject.claim.metadata.name
  if (className !== undefined) recordEvent(subject, changedClass(claimName, className), context)
  if (io.length > 0) recordEvent(subject, changedIo(claimName, call.target, io), context)
  if (className === undefined && io.length === 0) recordEvent(subject, canceled, context)
  if (className !== undefined && situation.wanted.className === undefined && call.purpose === 'change') {
    if (situation.inEffect.className === undefined) recordEvent(subject, tooLateToCancel(className), context)
  }
}

function count({ concern, situation }: Attempt, code: string, { metrics, facts }: ModifyingContext): void {
  const isAboutClass = concern.className !== undefined || situation.classStatus !== undefined
  metrics?.called({ driverName: facts.name, isAboutClass, isAboutIo: concern.io.length > 0, code })
}
