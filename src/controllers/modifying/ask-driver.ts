// One try to give a volume its attributes: the intent and the way back on the claim, the call, and what came of it on
// volume and claim. Three writes when all goes well, the last two as one where the server can.

import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import {
  CsiError,
  goNameOf,
  isInfeasibleModify,
  isUncertain as isUncertainAnswer,
  redactCredentials,
} from '../../csi/index.ts'
import { backOff, retryAfter, stuck } from '../../runtime/index.ts'
import type { Credentials } from '../../volumes/credentials.ts'
import { createMetadata } from '../provisioning/csi/parameters.ts'
import { delayed, isInUse, type Subject } from '../volume-changes/index.ts'
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
import { type Ask, fingerprintOf, goalOf, heldByUse, knownAttributes } from './plan-modification.ts'
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
import { afterWrite, type Step, tell } from './step.ts'
import { sameTarget, targetText } from './target.ts'
import { madeWith, type Undo, undoFor } from './undo.ts'
import { writeBoth, writeStatus } from './writing.ts'

/** Changes arrive within moments, mostly. */
const UNSEEN_MS = 1_000

/** A try, once the claim says that it is being made. */
interface Try {
  readonly ask: Ask
  readonly concern: Concern
  readonly situation: Situation
  readonly subject: Subject
  readonly credentials: Credentials
  /** What may be changed if the driver says that this try changed nothing. */
  readonly undoBefore: Undo
}

export async function askDriver(
  ask: Ask,
  situation: Situation,
  subject: Subject,
  context: ModifyingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { answers, clock, driver, election, settings } = context
  let credentials: Credentials
  try {
    credentials = await modifyCredentials(subject, context, signal)
  } catch (error) {
    const because = `cannot modify volume to "${targetText(ask.target)}": ${(error as Error).message}`
    tell(subject, modifyFailed(because), context)
    return backOff(because)
  }

  const concern = concernOf(situation, ask)
  const undo = await undoOfTry(ask, situation, subject, context, signal)
  const { claim, volume } = subject
  const patch = beginPatch({ claim, situation, target: ask.target, concern, nowMs: clock.nowMs() }, undo)
  let begun = subject
  if (patch) {
    // A way back is never held up: until it is gone, the volume is not what anyone says it is.
    const delay = ask.purpose === 'change' ? context.pace?.begin(subject) : undefined
    if (delay?.isNews) tell(subject, delayed(delay), context)
    if (delay) return retryAfter(delay.afterMs, delay.because)
    if (!(await isVolumeAsSeen(subject, context))) {
      return retryAfter(UNSEEN_MS, 'the volume has changed, and the change has not arrived here yet')
    }
    const written = await writeStatus(subject, patch, context)
    if (written.is !== 'written') return afterWrite(written)
    begun = written.subject
    tellBegun(ask, concern, begun, context)
  }

  answers.uncertain(claim)
  election?.assertStillLeader()
  const own: Try = {
    ask,
    concern,
    situation: await situationOf(begun, context),
    subject: begun,
    credentials,
    undoBefore: patch ? (situation.undo ?? {}) : undo,
  }
  try {
    const metadata = settings.extraModifyMetadata ? createMetadata(claim, volume.metadata.name ?? '') : {}
    const request = {
      volumeId: volume.spec?.csi?.volumeHandle ?? '',
      secrets: { ...credentials },
      mutableParameters: { ...ask.attributes, ...metadata },
    }
    await driver.controller.controllerModifyVolume(request, { timeoutMs: settings.timeoutMs, signal })
  } catch (error) {
    if (signal.aborted) return backOff('stopped while the driver was being asked')
    if (!(error instanceof CsiError)) throw error
    count(own, goNameOf(error.codeName), context)
    return failed(own, error, context)
  }
  count(own, 'OK', context)
  return finished(own, context)
}

/** The way back is made of what the volume says it has: one that was changed unseen would be put back wrongly. */
async function isVolumeAsSeen({ volume }: Subject, { client }: ModifyingContext): Promise<boolean> {
  const { name = '', resourceVersion } = volume.metadata
  return (await client.get(persistentVolumeKind, { name })).metadata.resourceVersion === resourceVersion
}

/** How to go back from what is about to be sent. Its storage class is asked only where nobody else knows. */
async function undoOfTry(
  { attributes }: Ask,
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
  return undoFor(attributes, recorded, { ...settings.defaults, ...madeWith(made?.parameters), ...known })
}

async function finished(own: Try, context: ModifyingContext): Promise<Step> {
  const { ask, concern, situation, subject } = own
  const { claim, volume } = subject
  const step = { claim, situation, target: ask.target, concern, nowMs: context.clock.nowMs() }
  const ofVolume = volumePatch(volume, ask, knownAttributes(situation), context.pace?.changed(subject))
  const written = await writeBoth(subject, ofVolume, finishPatch(step, ask), context)
  if (written.is !== 'written') return afterWrite(written)
  context.answers.final(claim)
  tellFinished(own, context)
  return { is: 'changed', subject: written.subject }
}

/** Answers that say so. */
const CHANGED_NOTHING: readonly FailureMeaning[] = ['infeasible', 'inUse']

async function failed(own: Try, error: CsiError, context: ModifyingContext): Promise<Step> {
  const { ask, concern, situation, subject, credentials, undoBefore } = own
  const { answers, clock, settings, pods } = context
  const { claim } = subject
  const meaning = meaningOf(error, own)
  const text = redactCredentials(error.rpcText, credentials)
  const isHeld = meaning === 'inUse' && pods !== undefined && isInUse(keyOfObject(claim), pods)
  const isStill = meaning === 'uncertain' && concern.className !== undefined
  const next = isHeld ? `. ${heldByUse(situation)}` : isStill ? `. Still modifying to VAC ${concern.className}` : ''
  if (meaning === 'infeasible') answers.refuse(claim, fingerprintOf(ask), settings.slowRetryMs)
  else if (meaning === 'inUse') answers.refuseInUse(claim)
  else if (meaning !== 'uncertain') answers.final(claim)

  const step = { claim, situation, target: ask.target, concern, nowMs: clock.nowMs() }
  const patch = failurePatch(step, {
    meaning,
    reason: goNameOf(error.codeName),
    message: redactCredentials(error.message, credentials),
    undo: CHANGED_NOTHING.includes(meaning) ? undoBefore : (situation.undo ?? {}),
  })
  tell(subject, modifyFailed(text + next), context)
  // A pod that comes later holds it: that is then another reason, and is told.
  if (meaning === 'inUse') answers.tell(claim, isHeld ? heldByUse(situation) : text)
  let left = subject
  if (patch) {
    const written = await writeStatus(subject, patch, context)
    if (written.is !== 'written') return afterWrite(written)
    left = written.subject
  }
  const isOutdated = !sameTarget(ask.target, goalOf(situation))
  if (isOutdated && meaning !== 'uncertain') return { is: 'changed', subject: left } // something else is wanted by now
  if (isHeld) return stuck(text + next)
  return meaning === 'infeasible' ? retryAfter(settings.slowRetryMs, text) : backOff(text + next)
}

function meaningOf(error: CsiError, { ask, concern }: Try): FailureMeaning {
  const hasAmounts = ask.target.iops !== undefined || ask.target.throughput !== undefined
  if (isInfeasibleModify(error) || (hasAmounts && error.codeName === 'OUT_OF_RANGE')) return 'infeasible'
  if (concern.io.length > 0 && error.codeName === 'FAILED_PRECONDITION') return 'inUse'
  return isUncertainAnswer(error) ? 'uncertain' : 'final'
}

function tellBegun({ target }: Ask, { className, io }: Concern, subject: Subject, context: ModifyingContext): void {
  const claimName = subject.claim.metadata.name ?? ''
  if (className !== undefined) tell(subject, changingClass(claimName, className), context)
  if (io.length > 0) tell(subject, changingIo(claimName, target, io), context)
}

function tellFinished({ ask, concern, situation, subject }: Try, context: ModifyingContext): void {
  const { className, io } = concern
  const claimName = subject.claim.metadata.name ?? ''
  if (className !== undefined) tell(subject, changedClass(claimName, className), context)
  if (io.length > 0) tell(subject, changedIo(claimName, ask.target, io), context)
  if (className === undefined && io.length === 0) tell(subject, canceled, context)
  if (className !== undefined && situation.wanted.className === undefined && ask.purpose === 'change') {
    if (situation.inEffect.className === undefined) tell(subject, tooLateToCancel(className), context)
  }
}

function count({ concern, situation }: Try, code: string, { metrics, facts }: ModifyingContext): void {
  const isAboutClass = concern.className !== undefined || situation.classStatus !== undefined
  metrics?.asked({ driverName: facts.name, isAboutClass, isAboutIo: concern.io.length > 0, code })
}
