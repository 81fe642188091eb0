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
import { explainHeldClaim, provisioningEvent, provisionFailedEvent } from './events.ts'
import {
  addIntent,
  clearSelectedNode,
  confirmIntent,
  hasIntent,
  isBeingDeleted,
  refOf,
  removeIntent,
} from './intent.ts'
import type { Failure, OverdueCallback, ProvisionResult, ProvisionRequest } from './provisioner.ts'
import { changed, type Step } from './step.ts'

export interface ProvisionAction {
  readonly claim: Claim
  readonly request: ProvisionRequest
  /** False: only to determine the result of an earlier try. */
  readonly isWanted: boolean
  readonly stage: Stage
}

const INFEASIBLE_RETRY_MS = 300_000
/** Other controllers write to new claims too, often twice in a row. */
const CONFLICT_RETRY_MS = 100

export async function provisionClaim(
  { claim, request, isWanted, stage }: ProvisionAction,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { provisioner, attempts, election, events, metrics, settings, clock } = context
  const isKnownOurs = attempts.of(claim) !== undefined
  if (!isKnownOurs && provisioner.accepts && !(await provisioner.accepts(request, signal))) return done
  /** This process sent the request and does not know its result: repeat it, even without the claim or its intent. */
  const repeatsOwnCall = stage.is === 'unknown' && stage.request !== undefined
  const sent = (stage.is === 'unknown' && stage.request) || request
  const attempt = attempts.getOrCreate(claim, stage)
  if (isWanted && !settings.inProcess) events.record(persistentVolumeClaimKind, claim, provisioningEvent(claim))
  attempt.startedMs = clock.monotonicMs()

  async function beforeCreate(): Promise<void> {
    if (!repeatsOwnCall) {
      if (hasIntent(claim, context.intent)) await confirmIntent(claim, context)
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
    if (overdue++ === 0) metrics?.recordProvisionFailure(claim)
    recordFailure(attempt, sent, { failure: 'unfinished', because, isOpen: true }, context)
  }
  const answer = await callProvisioner(sent, { beforeCreate, onOverdue }, context, signal)
  if (answer.is === 'notStarted') {
    if (!repeatsOwnCall) attempts.forget(claim) // another process may start meanwhile
    return retryAfterConflict(answer.error, claim, context)
  }
  return applyResult(answer, { attempt, request, previousStage: stage }, context)
}

type NotStarted = { readonly is: 'notStarted'; readonly error: unknown }

async function callProvisioner(
  request: ProvisionRequest,
  { beforeCreate, onOverdue }: { beforeCreate(): Promise<void>; readonly onOverdue: OverdueCallback },
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<ProvisionResult | NotStarted> {
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
    return { is: 'failed', failure: 'unfinished', because: error instanceof Error ? error.message : String(error) }
  }
}

/** Reads the claim: with a cache that is behind, the next try would fail the same way. */
async function retryAfterConflict(error: unknown, claim: Claim, { client, claims }: ProvisioningContext): Promise<Step> {
  if (isNotFound(error)) return done
  if (!isConflict(error)) throw error
  try {
    claims.learn(await client.get(persistentVolumeClaimKind, refOf(claim)))
  } catch (unread) {
    if (isNotFound(unread)) return done
    throw unread
  }
  return retryAfter(CONFLICT_RETRY_MS, 'the claim changed during the reconcile')
}

interface ProvisionCall {
  readonly attempt: Attempt
  readonly request: ProvisionRequest
  readonly previousStage: Stage
}

async function applyResult(answer: ProvisionResult, call: ProvisionCall, context: ProvisioningContext): Promise<Step> {
  const { attempt, request } = call
  const { provisioner, settings } = context
  switch (answer.is) {
    case 'provisioned': {
      const by = { provisionerName: provisioner.name, finalizer: settings.volumeFinalizer }
      const volume = buildVolume(request, answer.volume, by)
      const mismatch = answer.volume.unusableReason ?? mismatchOf(volume, request.claim)
      if (mismatch === undefined) {
        attempt.stage = { is: 'unsaved', volume, tries: 0, rejections: 0, notBeforeMs: 0 }
        return changed('its volume is provisioned')
      }
      const because = `Volume "${request.volumeName}" does not satisfy the claim: ${mismatch}. It is deleted again.`
      attempt.stage = { is: 'unwanted', volume, because, tries: 0, notBeforeMs: 0 }
      countAndRecordFailure(attempt, request, { failure: 'unfinished', because, isOpen: false }, context)
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
  { failure, because, isNotCalled }: Extract<ProvisionResult, { is: 'failed' }>,
  { attempt, request, previousStage }: ProvisionCall,
  context: ProvisioningContext,
): Promise<Step> {
  const mayExist = isNotCalled === true && previousStage.is === 'unknown'
  const isOpen = mayExist || failure === 'unfinished' || (failure === 'noChange' && previousStage.is === 'unknown')
  countAndRecordFailure(attempt, request, { failure, because, isOpen }, context)
  switch (failure) {
    case 'unfinished':
      return changed(because)
    case 'noChange':
      attempt.stage = previousStage
      return changed(because)
    case 'final':
      break
    case 'infeasible':
      attempt.infeasible = {
        untilMs: context.clock.monotonicMs() + INFEASIBLE_RETRY_MS,
        classUid: request.storageClass.metadata.uid ?? '',
        because,
      }
      break
    case 'reschedule':
      attempt.stage = mayExist ? { is: 'unknown' } : { is: 'nothing' } // the request for another node differs
      if (request.selectedNode === undefined || isBeingDeleted(attempt.claim)) break
      if (!(await clearSelectedNode(attempt.claim, { node: request.selectedNode, mayExist }, context))) break
      if (!mayExist) await releaseClaim(attempt, context)
      return stuck(`node "${request.selectedNode}" is unsuitable, the scheduler has to select another: ${because}`)
  }
  attempt.stage = mayExist ? previousStage : { is: 'nothing' }
  return changed(because)
}

interface FailedCall {
  readonly failure: Failure
  readonly because: string
  /** A volume may exist nevertheless. */
  readonly isOpen: boolean
}

function countAndRecordFailure(attempt: Attempt, sent: ProvisionRequest, failed: FailedCall, context: ProvisioningContext): void {
  context.metrics?.recordProvisionFailure(attempt.claim)
  recordFailure(attempt, sent, failed, context)
}

function recordFailure(
  { claim }: Attempt,
  { volumeName }: ProvisionRequest,
  { failure, because, isOpen }: FailedCall,
  { claims, events, intent }: ProvisioningContext,
): void {
  const present = claims.get(keyOfObject(claim))
  const isHeld =
    isOpen && present !== undefined && present.metadata.uid === claim.metadata.uid && isBeingDeleted(present)
  const message = isHeld ? explainHeldClaim(because, { volumeName, intent }) : because
  events.record(persistentVolumeClaimKind, claim, provisionFailedEvent(failure, message))
}

async function releaseClaim({ claim }: Attempt, context: ProvisioningContext): Promise<void> {
  const { uid } = claim.metadata
  const present = context.claims.get(keyOfObject(claim))
  await removeIntent(present?.metadata.uid === uid ? present : claim, context)
  context.attempts.forget(claim)
  context.provisioner.forget?.(uid)
}
