// What becomes of a volume between being made and being saved. A server that cannot be reached is tried for as long as
// it takes; one that refuses the volume a few times will not have it, and then the storage is freed again.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { keyOfObject } from '../../client/index.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt, Stage } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import { cannotProvision, cleanupFailed, notNeeded, provisioned, savingFailed } from './events.ts'
import { isGoing } from './intent.ts'
import type { Deleted, Overdue } from './provisioner.ts'
import { lookAt, saveVolume } from './save-volume.ts'
import { changed, type Step } from './step.ts'

/** After this many the volume is deleted, and a claim that still exists starts over. */
export const SAVE_REFUSALS_MAX = 5
const SAVE_BACKOFF = { baseMs: 1_000, maxMs: 30_000 }
const CLEANUP_BACKOFF = { baseMs: 1_000, maxMs: 300_000 }

type Unsaved = Extract<Stage, { is: 'unsaved' }>
type Unwanted = Extract<Stage, { is: 'unwanted' }>

export async function trySaving(claim: Claim, stage: Unsaved, context: ProvisioningContext): Promise<Step> {
  const { volume, tries, refusals } = stage
  const { events, metrics, clock, random } = context
  const attempt = context.attempts.begin(claim, stage)
  const tell = (happening: ReturnType<typeof cannotProvision>) => {
    events.record(persistentVolumeClaimKind, claim, happening)
    metrics?.provisioningFailed(claim)
  }
  const later = (because: string, refused: 0 | 1): Step => {
    const notBeforeMs = clock.monotonicMs() + backoffMs(SAVE_BACKOFF, tries, random)
    attempt.stage = { ...stage, tries: tries + 1, refusals: refusals + refused, notBeforeMs }
    return changed(because)
  }
  const saved = await saveVolume(volume, claim, context)
  switch (saved.is) {
    case 'saved':
      return keep(attempt, volume, saved.resourceVersion, context)
    case 'outrun':
      tell(cannotProvision(saved.because))
      return discard(attempt, stage, saved.because)
    case 'notOurs':
      tell(cannotProvision(saved.because))
      attempt.stage = { is: 'nothing' }
      return changed(saved.because)
    case 'unanswered':
      return later(saved.because, 0)
    case 'refused': {
      const isLast = refusals + 1 >= SAVE_REFUSALS_MAX
      tell(savingFailed(claim, saved.because, isLast))
      return isLast ? discard(attempt, stage, saved.because) : later(saved.because, 1)
    }
  }
}

export async function cleanUp(
  claim: Claim,
  stage: Unwanted,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { events, election, clock, random } = context
  const { volume, tries } = stage
  const attempt = context.attempts.begin(claim, stage)
  const later = (because: string): Step => {
    const notBeforeMs = clock.monotonicMs() + backoffMs(CLEANUP_BACKOFF, tries, random)
    attempt.stage = { ...stage, because, tries: tries + 1, notBeforeMs }
    return changed(because)
  }
  // A reply that was lost may have been a yes: what the server knows is not ours to delete here.
  const found = await lookAt(volume, context)
  if (found?.is === 'saved') return keep(attempt, volume, found.resourceVersion, context)
  if (found?.is === 'unanswered') return later(found.because)
  if (found?.is !== 'notOurs') {
    election?.assertStillLeader()
    const tell = (because: string) =>
      events.record(persistentVolumeClaimKind, claim, cleanupFailed(claim, volume.metadata.name ?? '', because))
    const deleted = await remove(volume, tell, context, signal)
    if (deleted.is !== 'deleted') {
      tell(deleted.because)
      return later(deleted.because)
    }
  }
  attempt.stage = { is: 'nothing' }
  return changed(stage.because)
}

function keep(
  attempt: Attempt,
  volume: Unsaved['volume'],
  resourceVersion: string,
  context: ProvisioningContext,
): Step {
  const { events, metrics, provisioner, settings, clock } = context
  const { claim, startedMs } = attempt
  const { name = '' } = volume.metadata
  attempt.stage = { is: 'saved', resourceVersion }
  metrics?.provisioned(claim, (clock.monotonicMs() - startedMs) / 1_000)
  const why = whyNotNeeded(claim, name, context)
  const isDeleted = volume.spec?.persistentVolumeReclaimPolicy === 'Delete'
  const plugin = settings.inProcess ? provisioner.name : undefined
  const happening = why === undefined ? provisioned(name, plugin) : notNeeded(name, why, isDeleted)
  events.record(persistentVolumeClaimKind, claim, happening)
  provisioner.forget?.(claim.metadata.uid ?? '')
  return changed('its volume is saved')
}

function whyNotNeeded({ metadata }: Claim, name: string, { claims }: ProvisioningContext): string | undefined {
  const present = claims.get(keyOfObject({ metadata }))
  if (!present || present.metadata.uid !== metadata.uid || isGoing(present)) return 'the claim is being deleted'
  const { volumeName } = present.spec ?? {}
  return volumeName && volumeName !== name ? `the claim has the volume ${volumeName}` : undefined
}

function discard(attempt: Attempt, { volume }: Unsaved, because: string): Step {
  attempt.stage = { is: 'unwanted', volume, because, tries: 0, notBeforeMs: 0 }
  return changed(because)
}

async function remove(
  volume: Unsaved['volume'],
  onOverdue: Overdue,
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<Deleted> {
  try {
    return await provisioner.delete(volume, signal, onOverdue)
  } catch (error) {
    return { is: 'failed', because: error instanceof Error ? error.message : String(error) }
  }
}
