// Moves one claim's volume closer to the size it asks for: reads, plans (plan-expansion.ts), takes one step, and plans
// again until there is nothing to do or something to wait for. Safe at any time and after any crash.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { keyOfObject } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  cancelled,
  completedOnNode,
  failureText,
  infeasible,
  nodePendingWithoutState,
  resizeStateOf,
  timeText,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import { isInUse, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { cancelledTelling, inUseText, needsNode, resizeFailed } from './events.ts'
import { expandVolume, findGrown } from './expand-volume.ts'
import { type ExpansionStep, planExpansion, type Situation } from './plan-expansion.ts'
import { claimWrite, save, volumeWrite } from './saving.ts'
import { changed, type Step } from './step.ts'

/** Of one claim in one go, that it keeps changing under our hands; then it waits for its turn like the others. */
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
    subject = asItIs(subject, context)
    if (!subject) return done
  }
  return backOff('the claim changes faster than its volume can follow')
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
    if (!(error instanceof ApiError) || signal.aborted) throw error
    if (error.code !== 409 && error.code !== 404) throw error
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
  const { answers, lowered, events, facts } = context
  switch (plan.do) {
    case 'nothing':
      answers.forget(keyOfObject(claim))
      if (resizeStateOf(claim) === undefined) lowered.forget(keyOfObject(claim)) // its growth is over
      return done
    case 'tidy': {
      const annotations = { [PRE_RESIZE_CAPACITY]: null }
      await save([volumeWrite(volume, { annotations, isConditional: true })], context)
      return changed
    }
    case 'clear':
      await save([claimWrite(claim, completedOnNode(claimCapacity(claim)))], context)
      return changed
    case 'leaveToNode': {
      const left = await save([claimWrite(claim, nodePendingWithoutState(timeText(context.clock.nowMs())))], context)
      if (left) events.record(persistentVolumeClaimKind, left, needsNode)
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
      return (await findGrown(subject, context, signal)) ?? cancel(subject, plan.volumeSize, context)
    case 'refuse': {
      const failure = { message: failureText(plan.because), ...(plan.reason ? { reason: plan.reason } : {}) }
      const now = timeText(context.clock.nowMs())
      await save([claimWrite(claim, infeasible(failure, now, plan.target))], context)
      const message = `Cannot expand volume ${keyOfObject(volume)} of claim ${keyOfObject(claim)}: ${plan.because}. The driver was not asked.`
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
  await save([...writes, claimWrite(claim, cancelled())], context)
  const happening = cancelledTelling(
    allocatedStorage(claim) ?? requestedStorage(claim),
    keyOfObject(volume),
    claimCapacity(claim),
  )
  context.events.record(persistentVolumeClaimKind, claim, happening)
  return changed
}

function situationOf({ claim, volume }: Subject, context: ExpandingContext): Situation {
  const { answers, pods, room, isNodeOnly, clock, settings } = context
  const answer = answers.of(claim)
  const alloc = allocatedStorage(claim)
  return {
    claim,
    volume,
    isFinal: answer?.refused !== undefined && alloc !== undefined && isSame(answer.refused, alloc),
    isHeldByUse: answer?.isOffline === true && pods !== undefined && isInUse(keyOfObject(claim), pods),
    isNodeOnly,
    shortageFor: (target) => room?.shortageFor(volume, target),
    nowMs: clock.nowMs(),
    slowMs: settings.slowRetryMs,
  }
}

/** As the caches show them now; undefined when they no longer belong together. */
function asItIs({ claim, volume }: Subject, { claims, volumes }: ExpandingContext): Subject | undefined {
  const [now, its] = [claims.get(keyOfObject(claim)), volumes.get(keyOfObject(volume))]
  const isSameClaim = now?.metadata.uid === claim.metadata.uid && now?.status?.phase === 'Bound'
  return now && its && isSameClaim && its.spec?.claimRef?.uid === claim.metadata.uid
    ? { claim: now, volume: its }
    : undefined
}

/** Someone was faster: look at what is there, rather than at what the caches will be told. */
async function reread({ claim, volume }: Subject, { client, claims, volumes }: ExpandingContext): Promise<Step> {
  const { namespace, name = '' } = claim.metadata
  try {
    claims.learn(await client.get(persistentVolumeClaimKind, { ...(namespace ? { namespace } : {}), name }))
    volumes.learn(await client.get(persistentVolumeKind, { name: volume.metadata.name ?? '' }))
    return changed
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return done // deleted meanwhile
    throw error
  }
}

const isSame = (a: string, b: string): boolean => !isLess(a, b) && !isLess(b, a)
