// One try: asks the storage for a claim's volume, and notes what that left behind. The intent is put on the claim
// right before the storage hears of it. Saving what was made, and deleting it again, is unsaved-volume.ts.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { ApiError } from '../../api/status-error.ts'
import { keyOfObject } from '../../client/index.ts'
import { done, retryAfter, stuck } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt, Stage } from './attempts.ts'
import { buildVolume } from './build-volume.ts'
import { mismatchOf } from './check-volume.ts'
import type { ProvisioningContext } from './context.ts'
import { heldBecause, provisioning, provisioningFailed } from './events.ts'
import { confirmIntent, dropIntent, giveNodeBack, holdsIntent, isGoing, putIntent, refOf } from './intent.ts'
import type { Failure, Overdue, Provisioned, ProvisionRequest } from './provisioner.ts'
import { changed, type Step } from './step.ts'

export interface Try {
  readonly claim: Claim
  readonly request: ProvisionRequest
  /** False: only to find out what an earlier try made. */
  readonly isWanted: boolean
  readonly stage: Stage
}

const INFEASIBLE_MS = 300_000
/** Others write to young claims too, often twice in a row. */
const CHANGED_MS = 100

export async function provisionClaim(
  { claim, request, isWanted, stage }: Try,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Step> {
  const { provisioner, attempts, election, events, metrics, settings, clock } = context
  const isKnownOurs = attempts.of(claim) !== undefined
  if (!isKnownOurs && provisioner.takes && !(await provisioner.takes(request, signal))) return done
  /** We asked, and do not know the end: that is found out whatever became of the claim and its intent. */
  const isOursToFindOut = stage.is === 'unknown' && stage.request !== undefined
  const asked = (stage.is === 'unknown' && stage.request) || request
  const attempt = attempts.begin(claim, stage)
  if (isWanted && !settings.inProcess) events.record(persistentVolumeClaimKind, claim, provisioning(claim))
  attempt.startedMs = clock.monotonicMs()

  async function aboutToAsk(): Promise<void> {
    if (!isOursToFindOut) {
      if (holdsIntent(claim, context.intent)) await confirmIntent(claim, context)
      else if (isWanted) attempt.claim = await putIntent(claim, context)
    }
    election?.assertStillLeader()
    attempt.stage = { is: 'unknown', request: asked }
  }
  let overdue = 0
  function onOverdue(because: string): void {
    context.log.warn(
      { claim: keyOfObject(claim), volume: asked.volumeName, because },
      'a volume takes too long to make',
    )
    if (overdue++ === 0) metrics?.provisioningFailed(claim)
    tell(attempt, asked, { how: 'unfinished', because, isOpen: true }, context)
  }
  const answer = await ask(asked, { aboutToAsk, onOverdue }, context, signal)
  if (answer.is === 'notBegun') {
    if (!isOursToFindOut) attempts.forget(claim) // someone else may begin it meanwhile, and we know nothing of that
    return whyNotBegun(answer.error, claim, context)
  }
  return note(answer, { attempt, asked, before: stage }, context)
}

type NotBegun = { readonly is: 'notBegun'; readonly error: unknown }

async function ask(
  request: ProvisionRequest,
  { aboutToAsk, onOverdue }: { aboutToAsk(): Promise<void>; readonly onOverdue: Overdue },
  { provisioner }: ProvisioningContext,
  signal: AbortSignal,
): Promise<Provisioned | NotBegun> {
  let isBegun = false
  let notBegun: NotBegun | undefined
  const begin = async () => {
    try {
      await aboutToAsk()
      isBegun = true
    } catch (error) {
      notBegun = { is: 'notBegun', error }
      throw error
    }
  }
  try {
    const answer = await provisioner.provision(request, signal, begin, onOverdue)
    if (answer.is === 'made' && !isBegun) throw new Error(`${provisioner.name} asked its storage without saying so`)
    return answer
  } catch (error) {
    if (notBegun) return notBegun
    // It must not throw; if it does, anything may have happened.
    return { is: 'failed', how: 'unfinished', because: error instanceof Error ? error.message : String(error) }
  }
}

/** A cache that is behind would make the same mistake over and over: the claim is read, and the next try is at what it is. */
async function whyNotBegun(error: unknown, claim: Claim, { client, claims }: ProvisioningContext): Promise<Step> {
  if (error instanceof ApiError && error.code === 404) return done
  if (!(error instanceof ApiError && error.code === 409)) throw error
  try {
    claims.learn(await client.get(persistentVolumeClaimKind, refOf(claim)))
  } catch (unread) {
    if (unread instanceof ApiError && unread.code === 404) return done
    throw unread
  }
  return retryAfter(CHANGED_MS, 'the claim changed meanwhile')
}

interface Asked {
  readonly attempt: Attempt
  readonly asked: ProvisionRequest
  readonly before: Stage
}

async function note(answer: Provisioned, noted: Asked, context: ProvisioningContext): Promise<Step> {
  const { attempt, asked } = noted
  const { provisioner, settings } = context
  switch (answer.is) {
    case 'made': {
      const by = { provisionerName: provisioner.name, finalizer: settings.volumeFinalizer }
      const volume = buildVolume(asked, answer.volume, by)
      const mismatch = answer.volume.unwanted ?? mismatchOf(volume, asked.claim)
      if (mismatch === undefined) {
        attempt.stage = { is: 'unsaved', volume, tries: 0, refusals: 0, notBeforeMs: 0 }
        return changed('its volume is made')
      }
      const because = `Volume "${asked.volumeName}" is not what was asked for: ${mismatch}. It is deleted again.`
      attempt.stage = { is: 'unwanted', volume, because, tries: 0, notBeforeMs: 0 }
      fail(attempt, asked, { how: 'unfinished', because, isOpen: false }, context)
      return changed(because)
    }
    case 'ignored':
      await letGo(attempt, context)
      return done
    case 'failed':
      return noteFailure(answer, noted, context)
  }
}

async function noteFailure(
  { how, because, isUnasked }: Extract<Provisioned, { is: 'failed' }>,
  { attempt, asked, before }: Asked,
  context: ProvisioningContext,
): Promise<Step> {
  const mayExist = isUnasked === true && before.is === 'unknown'
  const isOpen = mayExist || how === 'unfinished' || (how === 'noChange' && before.is === 'unknown')
  fail(attempt, asked, { how, because, isOpen }, context)
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
        classUid: asked.storageClass.metadata.uid ?? '',
        because,
      }
      break
    case 'reschedule':
      attempt.stage = mayExist ? { is: 'unknown' } : { is: 'nothing' } // on another node the request is another
      if (asked.selectedNode === undefined || isGoing(attempt.claim)) break
      if (!(await giveNodeBack(attempt.claim, { node: asked.selectedNode, mayExist }, context))) break
      if (!mayExist) await letGo(attempt, context)
      return stuck(`node "${asked.selectedNode}" will not do, another has to be chosen: ${because}`)
  }
  attempt.stage = mayExist ? before : { is: 'nothing' }
  return changed(because)
}

interface Failed {
  readonly how: Failure
  readonly because: string
  /** Something may exist all the same. */
  readonly isOpen: boolean
}

function fail(attempt: Attempt, asked: ProvisionRequest, failed: Failed, context: ProvisioningContext): void {
  context.metrics?.provisioningFailed(attempt.claim)
  tell(attempt, asked, failed, context)
}

function tell(
  { claim }: Attempt,
  { volumeName }: ProvisionRequest,
  { how, because, isOpen }: Failed,
  { claims, events, intent }: ProvisioningContext,
): void {
  const present = claims.get(keyOfObject(claim))
  const isHeld = isOpen && present !== undefined && present.metadata.uid === claim.metadata.uid && isGoing(present)
  const said = isHeld ? heldBecause(because, { volumeName, intent }) : because
  events.record(persistentVolumeClaimKind, claim, provisioningFailed(how, said))
}

async function letGo({ claim }: Attempt, context: ProvisioningContext): Promise<void> {
  const { uid = '' } = claim.metadata
  const present = context.claims.get(keyOfObject(claim))
  await dropIntent(present?.metadata.uid === uid ? present : claim, context)
  context.attempts.forget(claim)
  context.provisioner.forget?.(uid)
}
