// Applies the action 'provision': calls the provisioner for a claim and records the resulting stage. The intent is set on
// the claim right before the storage is called. Creating the PV, or deleting the volume again, is unsaved-volume.ts.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject } from '../../client/index.ts'
import { done, retryAfter, stuck } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt, Stage } from './attempts.ts'
import { buildVolume } from './build-volume.ts'
import { mismatchOf } from './check-volume.ts'
import type { ProvisioningContext } from './context.ts'
import { explainHeldClaim, provisioning, provisioningFailed } from './events.ts'
import {
  addIntent,
  clearSelectedNode,
  confirmIntent,
  holdsIntent,
  isBeingDeleted,
  refOf,
  removeIntent,
} from './intent.ts'
import type { Failure, Overdue, Provisioned, ProvisionRequest } from './provisioner.ts'
import { changed, type Step } from './step.ts'

export interface ProvisionStep {
  readonly claim: Claim
  readonly request: ProvisionRequest
  /** False: only to determine the result of an earlier try. */
  readonly isWanted: boolean
  readonly stage: Stage
}

const INFEASIBLE_MS = 300_000
/** Other controllers write to new claims too, often twice in a row. */
const CHANGED_MS = 100

export async function provisionClaim(
  { claim, request, isWanted, stage }: ProvisionStep,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { provisioner, attempts, election, events, metrics, settings, clock } = context
  const isKnownOurs = attempts.of(claim) !== undefined
  if (!isKnownOurs && provisioner.accepts && !(await provisioner.accepts(request, signal))) return done
  /** This process sent the request and does not know its result: repeat it, even without the claim or its intent. */
  const repeatsOwnCall = stage.is === 'unknown' && stage.request !== undefined
  const sent = (stage.is === 'unknown' && stage.request) || request
  const attempt = attempts.begin(claim, stage)
  if (isWanted && !settings.inProcess) events.record(persistentVolumeClaimKind, claim, provisioning(claim))
  attempt.startedMs = clock.monotonicMs()

  async function beforeCreate(): Promise<void> {
    if (!repeatsOwnCall) {
      if (holdsIntent(claim, context.intent)) await confirmIntent(claim, context)
      else if (isWanted) attempt.claim = await addIntent(claim, context)
    }
    election?.assertStillLeader()
    attempt.stage = { is: 'unknown', request: sent }
  }
  let overdue = 0
  function onOverdue(because: string): void {
    context.log.warn(
      { claim: keyOfObject(claim), volume: sent.volumeName, because },
      'provisioning a volume exceeds its time limit; waiting for the call to end',
    )
    if (overdue++ === 0) metrics?.provisioningFailed(claim)
    recordFailure(attempt, sent, { how: 'unfinished', because, isOpen: true }, context)
  }
  const answer = await callProvisioner(sent, { beforeCreate, onOverdue }, context, signal)
  if (answer.is === 'notStarted') {
    if (!repeatsOwnCall) attempts.forget(claim) // another process may start meanwhile
    return afterIntentFailed(answer.error, claim, context)
  }
  return applyResult(answer, { attempt, sent, before: stage }, context)
}

type NotStarted = { readonly is: 'notStarted'; readonly error: unknown }

async function callProvisioner(
  request: ProvisionRequest,
  { beforeCreate, onOverdue }: { beforeCreate(): Promise<void>; readonly onOverdue: Overdue },
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<Provisioned | NotStarted> {
  let isBegun = false
  let notBegun: NotStarted | undefined
  const begin = async () => {
    try {
      await beforeCreate()
      isBegun = true
    } catch (error) {
      notBegun = { is: 'notStarted', error }
      throw error
    }
  }
  try {
    const answer = await provisioner.provision(request, signal, begin, onOverdue)
    if (answer.is === 'provisioned' && !isBegun)
      throw new Error(`${provisioner.name} called its storage without calling beforeCreate first`)
    return answer
  } catch (error) {
    if (notBegun) return notBegun
    // provision() must not throw; if it does, the result is unknown.
    return { is: 'failed', how: 'unfinished', because: error instanceof Error ? error.message : String(error) }
  }
}

/** Reads the claim: with a cache that is behind, the next try would fail the same way. */
async function afterIntentFailed(error: unknown, claim: Claim, { client, claims }: ProvisioningContext): Promise<Step> {
  if (isNotFound(error)) return done
  if (!isConflict(error)) throw error
  try {
    claims.learn(await client.get(persistentVolumeClaimKind, refOf(claim)))
  } catch (unread) {
    if (isNotFound(unread)) return done
    throw unread
  }
  return retryAfter(CHANGED_MS, 'the claim changed during the reconcile')
}

interface SentCall {
  readonly attempt: Attempt
  readonly sent: ProvisionRequest
  readonly before: Stage
}

async function applyResult(answer: Provisioned, call: SentCall, context: ProvisioningContext): Promise<Step> {
  const { attempt, sent } = call
  const { provisioner, settings } = context
  switch (answer.is) {
    case 'provisioned': {
      const by = { provisionerName: provisioner.name, finalizer: settings.volumeFinalizer }
      const volume = buildVolume(sent, answer.volume, by)
      const mismatch = answer.volume.unwanted ?? mismatchOf(volume, sent.claim)
      if (mismatch === undefined) {
        attempt.stage = { is: 'unsaved', volume, tries: 0, rejections: 0, notBeforeMs: 0 }
        return changed('its volume is provisioned')
      }
      const because = `Volume "${sent.volumeName}" does not satisfy the claim: ${mismatch}. It is deleted again.`
      attempt.stage = { is: 'unwanted', volume, because, tries: 0, notBeforeMs: 0 }
      fail(attempt, sent, { how: 'unfinished', because, isOpen: false }, context)
      return changed(because)
    }
    case 'ignored':
      await releaseClaim(attempt, context)
      return done
    case 'failed':
      return applyFailure(answer, call, context)
  }
}

async function applyFailure(
  { how, because, isNotCalled }: Extract<Provisioned, { is: 'failed' }>,
  { attempt, sent, before }: SentCall,
  context: ProvisioningContext,
): Promise<Step> {
  const mayExist = isNotCalled === true && before.is === 'unknown'
  const isOpen = mayExist || how === 'unfinished' || (how === 'noChange' && before.is === 'unknown')
  fail(attempt, sent, { how, because, isOpen }, context)
  switch (how) {
    case 'unfinished':
      return changed(because)
    case 'noChange':
      attempt.stage = before
      return changed(because)
    case 'final':
      break
    case 'infeasible':
      attempt.infeasible = {
        untilMs: context.clock.monotonicMs() + INFEASIBLE_MS,
        classUid: sent.storageClass.metadata.uid ?? '',
        because,
      }
      break
    case 'reschedule':
      attempt.stage = mayExist ? { is: 'unknown' } : { is: 'nothing' } // the request for another node differs
      if (sent.selectedNode === undefined || isBeingDeleted(attempt.claim)) break
      if (!(await clearSelectedNode(attempt.claim, { node: sent.selectedNode, mayExist }, context))) break
      if (!mayExist) await releaseClaim(attempt, context)
      return stuck(`node "${sent.selectedNode}" is unsuitable, the scheduler has to select another: ${because}`)
  }
  attempt.stage = mayExist ? before : { is: 'nothing' }
  return changed(because)
}

interface Failed {
  readonly how: Failure
  readonly because: string
  /** A volume may exist nevertheless. */
  readonly isOpen: boolean
}

function fail(attempt: Attempt, sent: ProvisionRequest, failed: Failed, context: ProvisioningContext): void {
  context.metrics?.provisioningFailed(attempt.claim)
  recordFailure(attempt, sent, failed, context)
}

function recordFailure(
  { claim }: Attempt,
  { volumeName }: ProvisionRequest,
  { how, because, isOpen }: Failed,
  { claims, events, intent }: ProvisioningContext,
): void {
  const present = claims.get(keyOfObject(claim))
  const isHeld =
    isOpen && present !== undefined && present.metadata.uid === claim.metadata.uid && isBeingDeleted(present)
  const message = isHeld ? explainHeldClaim(because, { volumeName, intent }) : because
  events.record(persistentVolumeClaimKind, claim, provisioningFailed(how, message))
}

async function releaseClaim({ claim }: Attempt, context: ProvisioningContext): Promise<void> {
  const { uid } = claim.metadata
  const present = context.claims.get(keyOfObject(claim))
  await removeIntent(present?.metadata.uid === uid ? present : claim, context)
  context.attempts.forget(claim)
  context.provisioner.forget?.(uid)
}
