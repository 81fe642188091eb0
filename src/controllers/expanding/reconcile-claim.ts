// Reconciles the size of one claim's volume: reads, plans (plan-expansion.ts), applies one step, and plans again until
// nothing is due or it has to wait. Idempotent; may run at any time and after any crash.
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
  resizeStateOf,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { inUseText, needsNode, resizeCancelled, resizeFailed } from './events.ts'
import { expandVolume, findLostExpansion } from './expand-volume.ts'
import { type ExpansionStep, planExpansion, type Situation } from './plan-expansion.ts'
import { changed, type Step } from './step.ts'
import { claimWrite, saveClaim, volumeWrite } from './writes.ts'

/** Steps per reconcile. A claim that is edited faster than this goes back to the queue. */
const STEPS_MAX = 20

export async function reconcileClaim(first: Subject, context: ExpandingContext, signal: AbortSignal): Promise<Outcome> {
  let subject: Subject | undefined = first
  let vain: Extract<Step, { is: 'tried' }> | undefined
  await context.lowered.catchUp(first, signal)
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const plan = planExpansion(situationOf(subject, context))
    if (vain && plan.do === 'expand' && isSame(plan.target, vain.target)) {
      return vain.isSlow ? retryAfter(context.settings.slowRetryMs, vain.because) : backOff(vain.because)
    }
    const step = await takeStep(plan, subject, context, signal)
    if (step.is === 'tried') vain = step
    else if (step.is !== 'changed') return step
    subject = current(subject, context)
    if (!subject) return done
  }
  return backOff('the claim is edited faster than its volume can be expanded')
}

async function takeStep(
  plan: ExpansionStep,
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  try {
    return await apply(plan, subject, context, signal)
  } catch (error) {
    if (signal.aborted || !(isConflict(error) || isNotFound(error))) throw error
    return reread(subject, context)
  }
}

async function apply(
  plan: ExpansionStep,
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { claim, volume } = subject
  const { responses, lowered, events, facts, saver } = context
  switch (plan.do) {
    case 'nothing':
      responses.forget(keyOfObject(claim))
      if (resizeStateOf(claim) === undefined) lowered.forget(keyOfObject(claim)) // the expansion has ended
      return done
    case 'removeAnnotation': {
      const annotations = { [PRE_RESIZE_CAPACITY]: null }
      await saver.save([volumeWrite(volume, { annotations, isConditional: true })])
      return changed
    }
    case 'clearStatus':
      await saver.save([claimWrite(claim, completedOnNodePatch(claimCapacity(claim)))])
      return changed
    case 'leaveToNode': {
      const now = formatTime(context.clock.nowMs())
      const saved = await saveClaim([claimWrite(claim, nodePendingWithoutStatePatch(now))], saver)
      if (saved) events.record(persistentVolumeClaimKind, saved, needsNode)
      return changed
    }
    case 'wait':
      return plan.afterMs === undefined ? stuck(plan.because) : retryAfter(plan.afterMs, plan.because)
    case 'hold': {
      const text = inUseText(keyOfObject(claim), facts.name)
      events.record(persistentVolumeClaimKind, claim, resizeFailed(text))
      return stuck(text)
    }
    case 'cancel':
      return (await findLostExpansion(subject, context, signal)) ?? cancel(subject, plan.volumeSize, context)
    case 'refuse': {
      const failure = { message: failureMessage(plan.because), reason: plan.reason }
      const now = formatTime(context.clock.nowMs())
      await saver.save([claimWrite(claim, infeasiblePatch(failure, now, plan.target))])
      const message = `Cannot expand volume ${keyOfObject(volume)} of claim ${keyOfObject(claim)}: ${plan.because}. The driver was not called.`
      events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
      return changed
    }
    case 'expand':
      return expandVolume(subject, plan, context, signal)
  }
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
  const { responses, pods, freeCapacity, isNodeOnly, clock, settings } = context
  const answer = responses.of(claim)
  const alloc = allocatedStorage(claim)
  return {
    claim,
    volume,
    isRejected: answer?.rejected !== undefined && alloc !== undefined && isSame(answer.rejected, alloc),
    isHeldByUse: answer?.requiresOffline === true && pods !== undefined && isInUse(keyOfObject(claim), pods),
    isNodeOnly,
    shortageFor: (target) => freeCapacity?.shortageFor(volume, target),
    nowMs: clock.nowMs(),
    slowRetryMs: settings.slowRetryMs,
  }
}

/** Claim and volume as the caches have them now; undefined if they are no longer bound to each other. */
function current({ claim, volume }: Subject, { claims, volumes }: ExpandingContext): Subject | undefined {
  const [now, its] = [claims.get(keyOfObject(claim)), volumes.get(keyOfObject(volume))]
  const isSameClaim = now?.metadata.uid === claim.metadata.uid && now?.status?.phase === 'Bound'
  return now && its && isSameClaim && its.spec?.claimRef?.uid === claim.metadata.uid
    ? { claim: now, volume: its }
    : undefined
}

/** After a conflict: read both objects from the server, because the caches may lag behind. */
async function reread({ claim, volume }: Subject, { client, claims, volumes }: ExpandingContext): Promise<Step> {
  const newClaim = await find(client, persistentVolumeClaimKind, refOfKey(keyOfObject(claim)))
  if (!newClaim) return done
  claims.learn(newClaim)
  const newVolume = await find(client, persistentVolumeKind, { name: keyOfObject(volume) })
  if (!newVolume) return done
  volumes.learn(newVolume)
  return changed
}

const isSame = (a: string, b: string): boolean => !isLess(a, b) && !isLess(b, a)
