// Moves one claim closer to having its volume: reads, plans (plan-claim.ts), does one thing, and plans again until there
// is something to wait for. Safe at any time and after any crash: see intent.ts.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { isOlder } from '../../runtime/reflector.ts'
import type { Claim } from '../../volumes/matching.ts'
import { mayExist } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import { cannotProvision } from './events.ts'
import { dropIntent, holdsIntent } from './intent.ts'
import { volumeNameOf } from './options.ts'
import { type ClaimAction, type ClaimSituation, planClaim } from './plan-claim.ts'
import { provisionClaim } from './provision-claim.ts'
import type { Step } from './step.ts'
import { cleanUp, trySaving } from './unsaved-volume.ts'

/**
 * Keys are `namespace/name`, and `namespace/name#uid` for a claim that went, its intent taken away by someone, while
 * something was in the making: `wake` is called with those.
 */
export async function reconcileClaim(
  key: ObjectKey,
  context: ProvisioningContext,
  wake: (key: ObjectKey) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const [name = '', lostUid] = key.split('#')
  if (lostUid !== undefined) {
    const attempt = context.attempts.at(name, lostUid)
    return attempt ? advance(attempt.claim, context, signal) : done
  }
  const claim = context.claims.get(name)
  for (const lost of context.attempts.lost(name, claim?.metadata.uid)) {
    if (mayExist(lost.stage)) wake(`${name}#${lost.claim.metadata.uid}`)
    else forget(lost.claim, context)
  }
  return claim ? advance(claim, context, signal) : done
}

async function advance(claim: Claim, context: ProvisioningContext, signal: AbortSignal): Promise<Outcome> {
  let tried: string | undefined
  for (;;) {
    const situation = situationOf(claim, context)
    const action = planClaim(situation)
    if (action.do === 'provision' && tried !== undefined) return backOff(tried)
    const step = await apply(action, situation, context, signal)
    if (step.is !== 'changed') return step
    tried = step.because
  }
}

function situationOf(from: Claim, context: ProvisioningContext): ClaimSituation {
  const { attempts, volumes, classes, settings, provisioner, clock } = context
  const claim = asItIs(from, context)
  let attempt = attempts.of(claim)
  if (attempt?.stage.is === 'saved' && !isOlder(volumes.resourceVersion, attempt.stage.resourceVersion)) {
    attempts.forget(claim) // the cache shows the volume, or its end
    attempt = undefined
  }
  const holds = holdsIntent(claim, context.intent)
  const volumeName = volumeNameOf(claim.metadata.uid ?? '', settings)
  return {
    provisionerName: provisioner.name,
    intent: context.intent,
    claim,
    holdsIntent: holds,
    stage: attempt?.stage ?? (holds ? { is: 'unknown' } : { is: 'nothing' }),
    infeasible: attempt?.infeasible,
    storageClass: classes.get(claimClassName(claim) ?? ''),
    volumeName,
    volume: volumes.get(volumeName),
    nowMs: clock.monotonicMs(),
  }
}

/** As the cache shows it now; one that is gone is like one that is going. */
function asItIs(claim: Claim, { claims, clock }: ProvisioningContext): Claim {
  const present = claims.get(keyOfObject(claim))
  if (present?.metadata.uid === claim.metadata.uid) return present ?? claim
  const deletionTimestamp = claim.metadata.deletionTimestamp ?? new Date(clock.nowMs()).toISOString()
  return { ...claim, metadata: { ...claim.metadata, deletionTimestamp } }
}

async function apply(
  action: ClaimAction,
  { claim, stage }: Pick<ClaimSituation, 'claim' | 'stage'>,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  switch (action.do) {
    case 'nothing':
      if (stage.is === 'nothing' && context.attempts.of(claim)) forget(claim, context)
      return done
    case 'wait':
      if (action.isTold) context.events.record(persistentVolumeClaimKind, claim, cannotProvision(action.because))
      return action.afterMs === undefined ? stuck(action.because) : retryAfter(action.afterMs, action.because)
    case 'letGo':
      await dropIntent(claim, context)
      if (stage.is !== 'saved') forget(claim, context) // that one is remembered until the cache shows its volume
      return apply(action.then, { claim, stage }, context, signal)
    case 'provision':
      return provisionClaim({ claim, request: action.request, isWanted: action.isWanted, stage }, context, signal)
    case 'save':
      return trySaving(claim, action.stage, context)
    case 'cleanUp':
      return cleanUp(claim, action.stage, context, signal)
  }
}

function forget(claim: Claim, { attempts, provisioner }: ProvisioningContext): void {
  attempts.forget(claim)
  provisioner.forget?.(claim.metadata.uid ?? '')
}
