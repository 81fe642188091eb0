// Reconciles the size of one claim's volume: reads, plans (plan-expansion.ts) and applies one step after the other, until
// nothing is left to do or a step has to wait. The process may crash at any point; the next reconcile plans from the stored
// claim and volume.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { find, keyOfObject, refOfKey } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  cancelledPatch,
  completedOnNodePatch,
  failureMessage,
  formatTime,
  infeasiblePatch,
  nodePendingWithoutStatePatch,
  resizeCondition,
  resizeStateOf,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage, volumeCapacity } from '../../volumes/sizes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { inUseMessage, nodeResizeRequired, resizeCancelled, resizeFailed } from './events.ts'
import { expandVolume, findLostExpansion } from './expand-volume.ts'
import { type ExpansionStep, isEqualSize, planExpansion, type Situation } from './plan-expansion.ts'
import { changed, type Step } from './step.ts'
import { claimWrite, saveClaim, volumeWrite } from './writes.ts'

/** Steps per reconcile. After that the claim is requeued with backoff. */
const STEPS_MAX = 20

export async function reconcileClaim(
  initialSubject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Outcome> {
  let subject: Subject | undefined = initialSubject
  let failedAttempt: Extract<Step, { is: 'failedCall' }> | undefined
  await context.loweredRequests.reportMissedEdit(initialSubject, signal)
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const plan = planExpansion(situationOf(subject, context))
    if (failedAttempt && plan.do === 'expand' && isEqualSize(plan.target, failedAttempt.target)) {
      const { isSlow, message, details } = failedAttempt
      return isSlow ? retryAfter(context.settings.slowRetryMs, message, details) : backOff(message, details)
    }
    const step = await applyOrReread(plan, subject, context, signal)
    if (step.is === 'failedCall') failedAttempt = step
    else if (step.is !== 'changed') return step
    subject = readCurrent(subject, context)
    if (!subject) return done
  }
  return backOff('the claim is edited faster than its volume can be expanded')
}

async function applyOrReread(
  plan: ExpansionStep,
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  try {
    return await apply(plan, subject, context, signal)
  } catch (error) {
    if (signal.aborted || !(isConflict(error) || isNotFound(error))) throw error
    return readFromServer(subject, context)
  }
}

async function apply(
  plan: ExpansionStep,
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { claim, volume } = subject
  const { records, loweredRequests, events, facts, saver } = context
  switch (plan.do) {
    case 'nothing':
      records.delete(keyOfObject(claim))
      if (resizeStateOf(claim) === undefined) {
        // The expansion has ended.
        loweredRequests.delete(keyOfObject(claim))
        records.deleteAttempt(keyOfObject(claim))
      }
      return isWaitingForNode(subject) ? waitForNode(subject) : done
    case 'removeAnnotation': {
      const annotations = { [PRE_RESIZE_CAPACITY]: null }
      await saver.save([volumeWrite(volume, { annotations, isConditional: true })])
      return changed
    }
    case 'clearStatus':
      await saver.save([claimWrite(claim, completedOnNodePatch(claimCapacity(claim)))])
      return changed
    case 'requestNodeExpansion': {
      const time = formatTime(context.clock.nowMs())
      const savedClaim = await saveClaim([claimWrite(claim, nodePendingWithoutStatePatch(time))], saver)
      if (savedClaim) events.record(persistentVolumeClaimKind, savedClaim, nodeResizeRequired)
      return changed
    }
    case 'wait':
      return plan.afterMs === undefined ? stuck(plan.message) : retryAfter(plan.afterMs, plan.message)
    case 'waitForPods': {
      const message = inUseMessage(keyOfObject(claim), facts.name)
      events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
      return stuck(message)
    }
    case 'cancel':
      return (await findLostExpansion(subject, context, signal)) ?? cancel(subject, plan.volumeSize, context)
    case 'reject': {
      const failure = { message: failureMessage(plan.message), reason: plan.reason }
      const time = formatTime(context.clock.nowMs())
      await saver.save([claimWrite(claim, infeasiblePatch(failure, time, plan.target))])
      const message = `Cannot expand volume ${keyOfObject(volume)} of claim ${keyOfObject(claim)}: ${plan.message}. The driver was not called.`
      events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
      return changed
    }
    case 'expand':
      records.recordAttempt(claim)
      return expandVolume(subject, plan, context, signal)
  }
}

/** Whether the volume is expanded but its file system is not: a node must complete the expansion. */
const isWaitingForNode = ({ claim, volume }: Subject): boolean =>
  claim.metadata.deletionTimestamp === undefined &&
  (resizeStateOf(claim)?.startsWith('Node') === true ||
    resizeCondition(claim, 'FileSystemResizePending') !== undefined) &&
  isLess(claimCapacity(claim), volumeCapacity(volume))

/**
 * Reports the pending node expansion as an operation here, because no node reports one while no pod uses the volume.
 */
function waitForNode({ claim, volume }: Subject): Outcome {
  const error = resizeCondition(claim, 'NodeResizeError')?.message
  const size = volumeCapacity(volume)
  return stuck(
    error ?? `volume ${keyOfObject(volume)} has ${size}; its file system is expanded when a pod that may write uses it`,
    { operation: 'ExpandNode', reason: error === undefined ? 'FileSystemResizePending' : 'NodeResizeError' },
  )
}

async function cancel(
  { claim, volume }: Subject,
  volumeSize: string | undefined,
  context: ExpandingContext,
): Promise<Step> {
  const annotations = { [PRE_RESIZE_CAPACITY]: null }
  const writes = volumeSize === undefined ? [] : [volumeWrite(volume, { size: volumeSize, annotations })]
  await context.saver.save([...writes, claimWrite(claim, cancelledPatch())])
  const event = resizeCancelled(
    allocatedStorage(claim) ?? requestedStorage(claim),
    keyOfObject(volume),
    claimCapacity(claim),
  )
  context.events.record(persistentVolumeClaimKind, claim, event)
  return changed
}

function situationOf({ claim, volume }: Subject, context: ExpandingContext): Situation {
  const { records, pods, freeCapacity, isNodeOnly, clock, settings } = context
  return {
    claim,
    volume,
    mayBeLarger: !isNodeOnly && records.possibleSize(claim) !== undefined,
    isEdited: records.isEditedSinceAttempt(claim),
    isBlockedByUse: records.requiresOffline(claim) && pods !== undefined && isInUse(keyOfObject(claim), pods),
    isNodeOnly,
    shortageFor: (target) => freeCapacity?.shortageFor(volume, target),
    nowMs: clock.nowMs(),
    slowRetryMs: settings.slowRetryMs,
  }
}

/** Reads the claim and the volume from the caches. Returns undefined if they are no longer bound to each other. */
function readCurrent({ claim, volume }: Subject, { claims, volumes }: ExpandingContext): Subject | undefined {
  const { uid } = claim.metadata
  const [newClaim, newVolume] = [claims.get(keyOfObject(claim)), volumes.get(keyOfObject(volume))]
  const isStillBound = newClaim?.metadata.uid === uid && newClaim?.status?.phase === 'Bound'
  return newClaim && newVolume && isStillBound && newVolume.spec?.claimRef?.uid === uid
    ? { claim: newClaim, volume: newVolume }
    : undefined
}

/** Reads both objects from the server after a conflict, because the caches may be behind. */
async function readFromServer(
  { claim, volume }: Subject,
  { client, claims, volumes }: ExpandingContext,
): Promise<Step> {
  const newClaim = await find(client, persistentVolumeClaimKind, refOfKey(keyOfObject(claim)))
  if (!newClaim) return done
  claims.applyWriteResult(newClaim)
  const newVolume = await find(client, persistentVolumeKind, { name: keyOfObject(volume) })
  if (!newVolume) return done
  volumes.applyWriteResult(newVolume)
  return changed
}
