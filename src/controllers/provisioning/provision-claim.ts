// Applies the action 'provision': calls the provisioner for a claim and records the resulting stage. Records the intent
// immediately before the storage is called, unless the binder has recorded it. unsaved-volume.ts creates the PV or deletes the volume.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { keyOfObject } from '../../client/index.ts'
import { done, retryAfter, stuck } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt, Stage } from './attempts.ts'
import { buildVolume } from './build-volume.ts'
import { mismatchOf } from './check-volume.ts'
import { clearSelectedNode } from './clear-selected-node.ts'
import type { ProvisioningContext } from './context.ts'
import { explainHeldClaim, provisionFailedEvent, provisioningEvent } from './events.ts'
import {
  addIntent,
  confirmIntent,
  hasFinalizer,
  hasIntent,
  isBeingDeleted,
  isExpectedIntent,
  markNoVolume,
  refOf,
  removeIntent,
} from './intent.ts'
import type { Failure, OverdueCallback, ProvisionRequest, ProvisionResult } from './provisioner.ts'
import { selectedNodeOf } from './select-claim.ts'
import { changed, type Step } from './step.ts'

export interface ProvisionAction {
  readonly claim: Claim
  readonly request: ProvisionRequest
  /** False if the call only determines the result of an earlier attempt. */
  readonly isRequested: boolean
  readonly stage: Stage
}

const INFEASIBLE_RETRY_MS = 300_000
/** A first call is reported in an event only if it takes this long, because most volumes then need one event only. */
const SLOW_CALL_MS = 1_000
/** Delay after a conflict. Other controllers also write to new claims, often several times. */
const CONFLICT_RETRY_MS = 100

export async function provisionClaim(
  { claim, request, isRequested, stage }: ProvisionAction,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { provisioner, attempts, election, events, metrics, settings, clock } = context
  const hasAttempt = attempts.of(claim) !== undefined
  if (!hasAttempt && provisioner.accepts && !(await provisioner.accepts(request, signal))) {
    if (isExpectedIntent(claim, context)) await removeIntent(claim, context)
    return done
  }
  /** Whether this process sent the request and its result is unknown. It is repeated even if the claim is deleted. */
  const repeatsOwnCall = stage.is === 'unknown' && stage.request !== undefined
  const repeatedRequest = (stage.is === 'unknown' && stage.request) || request
  const attempt = attempts.getOrCreate(claim, stage)
  const { selectedNode } = repeatedRequest
  if (isRequested && selectedNode !== undefined && provisioner.isLostNode?.(selectedNode)) {
    // The storage of a lost node may never respond. The request for another node differs, so nothing is repeated.
    provisioner.forget?.(claim.metadata.uid)
    const message = `node "${selectedNode}" is lost`
    const failed = { is: 'failed', failure: 'reschedule', message, isNotCalled: true } as const
    return applyFailure(failed, { attempt, request: repeatedRequest, previousStage: stage }, context)
  }
  const reportsStart = isRequested && !settings.inProcess
  const recordStart = () => events.record(persistentVolumeClaimKind, claim, provisioningEvent(claim))
  if (reportsStart && hasAttempt) recordStart()
  let cancelStartEvent = () => {}
  attempt.callStartedMs = clock.monotonicMs()

  async function beforeCreate(): Promise<void> {
    if (!repeatsOwnCall) {
      if (hasIntent(claim, context)) await confirmIntent(claim, context)
      else if (isRequested) attempt.claim = await addIntent(claim, context)
    }
    election?.assertStillLeader()
    context.expectedIntents.delete(keyOfObject(claim))
    attempt.stage = { is: 'unknown', request: repeatedRequest }
    // The time in which the intent is recorded does not count: in a burst of claims, it would add an event to each of them.
    if (reportsStart && !hasAttempt) cancelStartEvent = clock.after(SLOW_CALL_MS, recordStart)
  }
  let overdueReports = 0
  function onOverdue(message: string): void {
    context.log.warn(
      { claim: keyOfObject(claim), volume: repeatedRequest.volumeName, message },
      'provisioning a volume exceeds its timeout; waiting for the call to return',
    )
    if (overdueReports++ === 0) metrics?.recordProvisionFailure(claim)
    recordFailure(attempt, repeatedRequest, { failure: 'unfinished', message, volumeMayExist: true }, context)
  }
  const result = await callProvisioner(repeatedRequest, { beforeCreate, onOverdue }, context, signal).finally(() =>
    cancelStartEvent(),
  )
  if (result.is === 'notStarted') {
    // Another process may start an attempt. The attempt of a journal entry remains, because its claim may be deleted.
    if (!repeatsOwnCall && !context.journal?.has(claim.metadata.uid)) attempts.forget(claim)
    return retryAfterConflict(result.error, claim, context)
  }
  return applyResult(result, { attempt, request, previousStage: stage }, context)
}

type NotStarted = { readonly is: 'notStarted'; readonly error: unknown }

async function callProvisioner(
  request: ProvisionRequest,
  { beforeCreate, onOverdue }: { beforeCreate(): Promise<void>; readonly onOverdue: OverdueCallback },
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<ProvisionResult | NotStarted> {
  let hasStarted = false
  let notStarted: NotStarted | undefined
  const start = async () => {
    try {
      await beforeCreate()
      hasStarted = true
    } catch (error) {
      notStarted = { is: 'notStarted', error }
      throw error
    }
  }
  try {
    const result = await provisioner.provision(request, signal, start, onOverdue)
    if (result.is === 'provisioned' && !hasStarted)
      throw new Error(`${provisioner.name} called its storage without calling beforeCreate first`)
    return result
  } catch (error) {
    if (notStarted) return notStarted
    // The result is unknown if provision() throws, which violates its contract.
    return { is: 'failed', failure: 'unfinished', message: error instanceof Error ? error.message : String(error) }
  }
}

/** Reads the claim from the server, because the next attempt with a stale cache would fail again. */
async function retryAfterConflict(
  error: unknown,
  claim: Claim,
  { client, claims }: ProvisioningContext,
): Promise<Step> {
  if (isNotFound(error)) return done
  if (!isConflict(error)) throw error
  try {
    claims.applyWriteResult(await client.get(persistentVolumeClaimKind, refOf(claim)))
  } catch (readError) {
    if (isNotFound(readError)) return done
    throw readError
  }
  return retryAfter(CONFLICT_RETRY_MS, 'the claim changed during the reconcile')
}

interface ProvisionCall {
  readonly attempt: Attempt
  readonly request: ProvisionRequest
  readonly previousStage: Stage
}

async function applyResult(result: ProvisionResult, call: ProvisionCall, context: ProvisioningContext): Promise<Step> {
  const { attempt, request } = call
  const { provisioner, settings } = context
  switch (result.is) {
    case 'provisioned': {
      const identity = { provisionerName: provisioner.name, finalizer: settings.volumeFinalizer }
      const volume = buildVolume(request, result.volume, identity)
      const mismatch = result.volume.unusableReason ?? mismatchOf(volume, request.claim)
      if (mismatch === undefined) {
        attempt.stage = { is: 'unsaved', volume, retries: 0, rejections: 0, notBeforeMs: 0 }
        return changed('the volume is provisioned')
      }
      const message = `Volume "${request.volumeName}" does not satisfy the claim: ${mismatch}. The volume is deleted.`
      attempt.stage = { is: 'unwanted', volume, message, retries: 0, notBeforeMs: 0 }
      countAndRecordFailure(attempt, request, { failure: 'unfinished', message, volumeMayExist: false }, context)
      return changed(message)
    }
    case 'ignored':
      await releaseClaim(attempt, context)
      return done
    case 'failed':
      return applyFailure(result, call, context)
  }
}

async function applyFailure(
  { failure, message, isNotCalled, details }: Extract<ProvisionResult, { is: 'failed' }>,
  { attempt, request, previousStage }: ProvisionCall,
  context: ProvisioningContext,
): Promise<Step> {
  const staysUnknown = isNotCalled === true && previousStage.is === 'unknown'
  const volumeMayExist =
    staysUnknown || failure === 'unfinished' || (failure === 'noChange' && previousStage.is === 'unknown')
  countAndRecordFailure(attempt, request, { failure, message, volumeMayExist }, context)
  // The storage was not called. Without this, the next process could not find that out if the request never becomes possible.
  if (isExpectedIntent(attempt.claim, context)) await removeIntent(attempt.claim, context)
  attempt.details = details
  switch (failure) {
    case 'unfinished':
      return changed(message)
    case 'noChange':
      attempt.stage = previousStage
      return changed(message)
    case 'final':
      break
    case 'infeasible':
      attempt.infeasible = {
        untilMs: context.clock.monotonicMs() + INFEASIBLE_RETRY_MS,
        classUid: request.storageClass.metadata.uid ?? '',
        message,
      }
      break
    case 'reschedule':
      if (staysUnknown)
        attempt.stage = { is: 'unknown' } // the request for another node differs
      else markNoVolume(attempt, context)
      if (request.selectedNode === undefined || isBeingDeleted(attempt.claim)) break
      {
        const failedNode = { node: request.selectedNode, volumeMayExist: staysUnknown, message }
        if (!(await clearSelectedNode(attempt.claim, failedNode, context))) break
      }
      if (hasOtherNode(attempt.claim, request.selectedNode, context)) return changed(message)
      if (!staysUnknown) await releaseClaim(attempt, context)
      return stuck(
        `node "${request.selectedNode}" is unsuitable; the scheduler must select another node: ${message}`,
        details,
      )
  }
  if (staysUnknown) attempt.stage = previousStage
  else markNoVolume(attempt, context)
  return changed(message)
}

/** Whether another node is selected for the claim already, so that no change to the claim will cause the next attempt. */
function hasOtherNode(claim: Claim, nodeName: string, { claims }: ProvisioningContext): boolean {
  const current = claims.get(keyOfObject(claim))
  const currentNode = current?.metadata.uid === claim.metadata.uid ? selectedNodeOf(current) : undefined
  return currentNode !== undefined && currentNode !== nodeName
}

interface FailedCall {
  readonly failure: Failure
  readonly message: string
  /** Whether a volume may exist despite the failure. */
  readonly volumeMayExist: boolean
}

function countAndRecordFailure(
  attempt: Attempt,
  request: ProvisionRequest,
  failedCall: FailedCall,
  context: ProvisioningContext,
): void {
  context.metrics?.recordProvisionFailure(attempt.claim)
  recordFailure(attempt, request, failedCall, context)
}

function recordFailure(
  { claim }: Attempt,
  { volumeName }: ProvisionRequest,
  { failure, message: errorMessage, volumeMayExist }: FailedCall,
  { claims, events, intentFinalizer }: ProvisioningContext,
): void {
  const current = claims.get(keyOfObject(claim))
  const isDeletedClaim = current?.metadata.uid === claim.metadata.uid && isBeingDeleted(current)
  const isHeld = volumeMayExist && isDeletedClaim && hasFinalizer(current, intentFinalizer)
  const message = isHeld ? explainHeldClaim(errorMessage, { volumeName, intentFinalizer }) : errorMessage
  events.record(persistentVolumeClaimKind, claim, provisionFailedEvent(failure, message))
}

async function releaseClaim({ claim }: Attempt, context: ProvisioningContext): Promise<void> {
  const { uid } = claim.metadata
  const current = context.claims.get(keyOfObject(claim))
  await removeIntent(current?.metadata.uid === uid ? current : claim, context)
  context.attempts.forget(claim)
  context.provisioner.forget?.(uid)
}
