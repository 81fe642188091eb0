// Applies the actions 'save' and 'cleanUp' to a provisioned volume without a PV. Creating the PV is retried without limit
// while the API server is unreachable. After a few rejections, the volume is deleted from the storage.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { keyOfObject } from '../../client/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt, Stage } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import {
  cannotProvisionEvent,
  cleanupFailedEvent,
  notNeededEvent,
  provisionedEvent,
  saveFailedEvent,
} from './events.ts'
import { isBeingDeleted, markNoVolume } from './intent.ts'
import type { DeleteResult, OverdueCallback } from './provisioner.ts'
import { findExistingVolume, saveVolume } from './save-volume.ts'
import { changed, type Step } from './step.ts'

/** After this many rejections, the volume is deleted, and an existing claim is provisioned again. */
const SAVE_REJECTIONS_MAX = 5
const SAVE_BACKOFF = { baseMs: 1_000, maxMs: 30_000 }
const CLEANUP_BACKOFF = { baseMs: 1_000, maxMs: 300_000 }

type Unsaved = Extract<Stage, { is: 'unsaved' }>
type Unwanted = Extract<Stage, { is: 'unwanted' }>

export async function saveProvisioned(claim: Claim, stage: Unsaved, context: ProvisioningContext): Promise<Step> {
  const { volume, retries, rejections } = stage
  const { events, metrics, clock, random } = context
  const attempt = context.attempts.getOrCreate(claim, stage)
  const recordFailure = (event: ReturnType<typeof cannotProvisionEvent>) => {
    events.record(persistentVolumeClaimKind, claim, event)
    metrics?.recordProvisionFailure(claim)
  }
  const retryLater = (message: string, newRejections: 0 | 1): Step => {
    const notBeforeMs = clock.monotonicMs() + backoffMs(SAVE_BACKOFF, retries, random)
    attempt.stage = { ...stage, retries: retries + 1, rejections: rejections + newRejections, notBeforeMs }
    return changed(message)
  }
  const result = await saveVolume(volume, claim, context)
  switch (result.is) {
    case 'saved':
      return completeAttempt(attempt, volume, result.resourceVersion, context)
    case 'superseded':
      recordFailure(cannotProvisionEvent(result.message))
      return discardVolume(attempt, stage, result.message)
    case 'foreign':
      recordFailure(cannotProvisionEvent(result.message))
      markNoVolume(attempt, context)
      return changed(result.message)
    case 'unknown':
      return retryLater(result.message, 0)
    case 'rejected': {
      const isLast = rejections + 1 >= SAVE_REJECTIONS_MAX
      recordFailure(saveFailedEvent(claim, result.message, isLast))
      return isLast ? discardVolume(attempt, stage, result.message) : retryLater(result.message, 1)
    }
  }
}

export async function cleanUpVolume(
  claim: Claim,
  stage: Unwanted,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { events, election, clock, random } = context
  const { volume, retries } = stage
  const attempt = context.attempts.getOrCreate(claim, stage)
  const retryLater = (message: string): Step => {
    const notBeforeMs = clock.monotonicMs() + backoffMs(CLEANUP_BACKOFF, retries, random)
    attempt.stage = { ...stage, message, retries: retries + 1, notBeforeMs }
    return changed(message)
  }
  // If the PV exists because the reply to its creation was lost, the volume must not be deleted.
  const existing = await findExistingVolume(volume, context)
  if (existing?.is === 'saved') return completeAttempt(attempt, volume, existing.resourceVersion, context)
  if (existing?.is === 'unknown') return retryLater(existing.message)
  if (existing?.is !== 'foreign') {
    election?.assertStillLeader()
    const recordFailure = (message: string) =>
      events.record(persistentVolumeClaimKind, claim, cleanupFailedEvent(claim, volume.metadata.name ?? '', message))
    const result = await deleteFromStorage(volume, recordFailure, context, signal)
    if (result.is !== 'deleted') {
      recordFailure(result.message)
      return retryLater(result.message)
    }
  }
  markNoVolume(attempt, context)
  return changed(stage.message)
}

function completeAttempt(
  attempt: Attempt,
  volume: Unsaved['volume'],
  resourceVersion: string,
  context: ProvisioningContext,
): Step {
  const { events, metrics, provisioner, settings, clock } = context
  const { claim, callStartedMs } = attempt
  const { name = '' } = volume.metadata
  attempt.stage = { is: 'saved', resourceVersion }
  context.journal?.remove(claim.metadata.uid)
  metrics?.recordProvision(claim, (clock.monotonicMs() - callStartedMs) / 1_000)
  const reason = notNeededReason(claim, name, context)
  const hasDeletePolicy = volume.spec?.persistentVolumeReclaimPolicy === 'Delete'
  const plugin = settings.inProcess ? provisioner.name : undefined
  const event = reason === undefined ? provisionedEvent(name, plugin) : notNeededEvent(name, reason, hasDeletePolicy)
  events.record(persistentVolumeClaimKind, claim, event)
  provisioner.forget?.(claim.metadata.uid)
  return changed('the PV is created')
}

function notNeededReason({ metadata }: Claim, name: string, { claims }: ProvisioningContext): string | undefined {
  const current = claims.get(keyOfObject({ metadata }))
  if (!current || current.metadata.uid !== metadata.uid || isBeingDeleted(current)) return 'the claim is being deleted'
  const { volumeName } = current.spec ?? {}
  return volumeName && volumeName !== name ? `the claim is bound to volume ${volumeName}` : undefined
}

function discardVolume(attempt: Attempt, { volume }: Unsaved, message: string): Step {
  attempt.stage = { is: 'unwanted', volume, message, retries: 0, notBeforeMs: 0 }
  return changed(message)
}

async function deleteFromStorage(
  volume: Unsaved['volume'],
  onOverdue: OverdueCallback,
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<DeleteResult> {
  try {
    return await provisioner.delete(volume, signal, onOverdue)
  } catch (error) {
    return { is: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}
