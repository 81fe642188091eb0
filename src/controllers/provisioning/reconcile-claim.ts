// Reconciles one claim: applies the actions of plan-claim.ts until nothing is left to do or an action has to wait. The reconcile
// is safe after a crash between any two steps (intent.ts).

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import { isOlder } from '../../runtime/reflector.ts'
import type { Claim } from '../../volumes/matching.ts'
import { volumeMayExist } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import { cannotProvisionEvent } from './events.ts'
import { hasIntent, isExpectedIntent, removeIntent } from './intent.ts'
import { volumeNameOf } from './options.ts'
import { type ClaimAction, type ClaimSituation, planClaim } from './plan-claim.ts'
import { provisionClaim } from './provision-claim.ts'
import type { Step } from './step.ts'
import { cleanUpVolume, saveProvisioned } from './unsaved-volume.ts'

/**
 * Keys are `namespace/name`, or `namespace/name#uid` for a deleted claim for which a volume may still exist. `enqueue` is
 * called with keys of deleted claims.
 */
export async function reconcileClaim(
  key: ObjectKey,
  context: ProvisioningContext,
  enqueue: (key: ObjectKey) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const [name = '', deletedUid] = key.split('#')
  if (deletedUid !== undefined) {
    const attempt = context.attempts.get(name, deletedUid)
    return attempt ? advance(attempt.claim, context, signal) : done
  }
  const claim = context.claims.get(name)
  if (!claim) context.expectedIntents.delete(name)
  for (const attempt of context.attempts.ofEarlierClaims(name, claim?.metadata.uid)) {
    if (volumeMayExist(attempt.stage)) enqueue(`${name}#${attempt.claim.metadata.uid}`)
    else {
      context.journal?.remove(attempt.claim.metadata.uid)
      forget(attempt.claim, context)
    }
  }
  return claim ? advance(claim, context, signal) : done
}

/** Whether the claim has its volume, or waits only until the cache contains the volume that was saved for it. */
export function isClaimSettled(key: ObjectKey, context: ProvisioningContext): boolean {
  const { claims, volumes, attempts, settings } = context
  const claim = claims.get(key)
  if (!claim || hasIntent(claim, context)) return false
  const { uid } = claim.metadata
  const volume = volumes.get(volumeNameOf(uid, settings))
  const attempt = attempts.of(claim)
  if (!attempt) return volume?.spec?.claimRef?.uid === uid && !attempts.has(key)
  return attempt.stage.is === 'saved' && volume === undefined && attempts.ofEarlierClaims(key, uid).length === 0
}

async function advance(claim: Claim, context: ProvisioningContext, signal: AbortSignal): Promise<Outcome> {
  let lastMessage: string | undefined
  for (;;) {
    const situation = situationOf(claim, context)
    const action = planClaim(situation)
    recordNameWait(action, situation, context) // before the first await, so that no deletion is missed
    if (action.do === 'provision' && lastMessage !== undefined)
      return backOff(lastMessage, context.attempts.of(situation.claim)?.details)
    const step = await apply(action, situation, context, signal)
    if (step.is !== 'changed') return step
    lastMessage = step.message
  }
}

function recordNameWait(
  action: ClaimAction,
  { claim, volumeName }: ClaimSituation,
  context: ProvisioningContext,
): void {
  const nextAction = action.do === 'releaseIntent' ? action.next : action
  if (nextAction.do === 'wait' && nextAction.forVolume !== undefined)
    context.claimsByTakenName.set(volumeName, keyOfObject(claim))
  else context.claimsByTakenName.delete(volumeName)
}

function situationOf(initial: Claim, context: ProvisioningContext): ClaimSituation {
  const { attempts, volumes, classes, settings, provisioner, clock } = context
  const claim = currentClaim(initial, context)
  let attempt = attempts.of(claim)
  if (attempt?.stage.is === 'saved' && !isOlder(volumes.resourceVersion, attempt.stage.resourceVersion)) {
    attempts.forget(claim) // the cache contains the volume or its deletion
    attempt = undefined
  }
  const holdsIntent = hasIntent(claim, context)
  const volumeName = volumeNameOf(claim.metadata.uid, settings)
  return {
    provisionerName: provisioner.name,
    intentFinalizer: context.intentFinalizer,
    claim,
    holdsIntent,
    entry: context.journal?.has(claim.metadata.uid) ? context.journal.describe(claim.metadata.uid) : undefined,
    stage: attempt?.stage ?? (holdsIntent && !isExpectedIntent(claim, context) ? { is: 'unknown' } : { is: 'nothing' }),
    infeasible: attempt?.infeasible,
    storageClass: classes.get(claimClassName(claim)),
    volumeName,
    volume: volumes.get(volumeName),
    nowMs: clock.monotonicMs(),
  }
}

/** Returns the claim from the cache. A claim that no longer exists is returned as being deleted. */
function currentClaim(claim: Claim, { claims, clock }: ProvisioningContext): Claim {
  const current = claims.get(keyOfObject(claim))
  if (current && current.metadata.uid === claim.metadata.uid) return current
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
      if (action.recordsEvent)
        context.events.record(persistentVolumeClaimKind, claim, cannotProvisionEvent(action.message))
      return action.afterMs === undefined
        ? stuck(action.message)
        : retryAfter(action.afterMs, action.message, context.attempts.of(claim)?.details)
    case 'releaseIntent':
      await removeIntent(claim, context)
      if (stage.is !== 'saved') forget(claim, context) // the attempt remains until the cache contains the volume
      return apply(action.next, { claim, stage }, context, signal)
    case 'provision':
      return provisionClaim({ claim, request: action.request, isRequested: action.isRequested, stage }, context, signal)
    case 'save':
      return saveProvisioned(claim, action.stage, context)
    case 'cleanUp':
      return cleanUpVolume(claim, action.stage, context, signal)
  }
}

function forget(claim: Claim, { attempts, provisioner }: ProvisioningContext): void {
  attempts.forget(claim)
  provisioner.forget?.(claim.metadata.uid)
}
