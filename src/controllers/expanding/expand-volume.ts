// Asks the driver for a size, and writes down how it went. Intent before effect: before it is asked, the claim says for
// what; so whatever dies, the next process asks for the same until it has an answer.
//
//   answer                            the claim                                    asked again
//   OK                                node's turn, or grown                        no
//   OK, but less than was asked for   ControllerResizeInfeasible, error condition  slowly
//   infeasible                        ControllerResizeInfeasible, error condition  slowly
//   final                             error condition                              with backoff
//   uncertain, or none                as it was                                    with backoff, for the same size

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../api/kinds/shared/class-names.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { ApiError } from '../../api/status-error.ts'
import { keyOfObject } from '../../client/index.ts'
import { CsiError, isInfeasibleExpand, isUncertain, redactCredentials } from '../../csi/index.ts'
import { backOff, NotLeaderError, retryAfter, stuck } from '../../runtime/index.ts'
import { type Credentials, readCredentials } from '../../volumes/credentials.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import {
  completed,
  failed,
  failureText,
  infeasible,
  nodePending,
  resizeStateOf,
  restarted,
  started,
  timeText,
} from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, volumeCapacity } from '../../volumes/sizes.ts'
import { publishFacts } from '../attaching/attacher/publish-request.ts'
import { delayed, type Subject } from '../volume-changes/index.ts'
import type { ExpandingContext } from './context.ts'
import { failedText, needsNode, resized, resizeFailed, resizing } from './events.ts'
import type { Beginning } from './plan-expansion.ts'
import { claimNote, claimWrite, save, volumeWrite } from './saving.ts'
import { changed, type Step, tried } from './step.ts'

type Claim = Readonly<PersistentVolumeClaim>

export interface Asking {
  readonly target: string
  readonly begins: Beginning
}

export async function expandVolume(
  { claim: before, volume }: Subject,
  { target, begins }: Asking,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { clock, events, answers, facts } = context
  const volumeName = keyOfObject(volume)
  let request: ExpandRequest
  try {
    request = await prepare(volume, target, context, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const because = (error as Error).message
    events.record(persistentVolumeClaimKind, before, resizeFailed(failedText(volumeName, facts.name, because)))
    return (error as { isStuck?: boolean }).isStuck ? stuck(because) : tried(target, because)
  }

  const delay = begins === 'anew' ? context.pace?.begin({ claim: before, volume }) : undefined
  if (delay?.isNews) events.record(persistentVolumeClaimKind, before, delayed(delay))
  if (delay) return retryAfter(delay.afterMs, delay.because)

  const now = timeText(clock.nowMs())
  const start = { anew: () => started(target, now), again: () => restarted(now), goesOn: undefined }[begins]
  const claim = (start && (await save([claimWrite(before, start())], context))) ?? before
  events.record(persistentVolumeClaimKind, claim, resizing(volumeName))
  answers.asking(claim, target, begins !== 'anew')
  let reply: Reply
  try {
    reply = await ask(request, target, context, signal)
  } catch (error) {
    const because = textOf(error, request.secrets)
    return notGrown(error, because, { claim, volume }, target, context, signal)
  }
  return saveGrown({ claim, volume }, reply, context)
}

/**
 * Before a growth is given up which was once asked for without an answer: asked for the size that the claim has, a driver
 * says what the volume has. Undefined where it has not grown, or nobody can tell.
 */
export async function findGrown(
  subject: Subject,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step | undefined> {
  const { claim, volume } = subject
  if (context.isNodeOnly || context.answers.of(claim)?.mayHave === undefined) return undefined
  const has = claimCapacity(claim)
  try {
    const reply = await ask(await prepare(volume, has, context, signal), has, context, signal)
    return isLess(has, reply.size) ? await saveGrown(subject, reply, context) : undefined
  } catch (error) {
    const tellsNothing = signal.aborted || error instanceof NotLeaderError || error instanceof ApiError
    if (tellsNothing) throw error
    // Who is refused what the volume has already is told nothing: then the user's word counts.
    const isToCome = error instanceof CsiError && isUncertain(error)
    return isToCome ? backOff(`whether the volume has grown is not known yet: ${error.message}`) : undefined
  }
}

interface ExpandRequest {
  readonly volumeId: string
  readonly volumeCapability: ReturnType<typeof publishFacts>['volumeCapability']
  readonly capacityRange: { readonly requiredBytes: bigint }
  readonly secrets: Credentials
}

interface Reply {
  readonly size: string
  readonly needsNode: boolean
}

/** Everything that can be known before anything is changed. Throws what keeps the driver from being asked. */
async function prepare(
  volume: Subject['volume'],
  target: string,
  { client, facts }: ExpandingContext,
  signal: AbortSignal,
): Promise<ExpandRequest> {
  const { volumeId, volumeCapability } = publishFacts(volume.spec ?? {}, facts, '')
  const { namespace = '', name = '' } = volume.spec?.csi?.controllerExpandSecretRef ?? {}
  const secrets = name ? await readCredentials(client, { namespace, name }, signal) : {}
  return { volumeId, volumeCapability, capacityRange: { requiredBytes: quantityToBytes(target) }, secrets }
}

async function ask(
  request: ExpandRequest,
  target: string,
  { driver, isNodeOnly, settings, election }: ExpandingContext,
  signal: AbortSignal,
): Promise<Reply> {
  if (isNodeOnly) return { size: target, needsNode: true }
  election?.assertStillLeader()
  const { capacityBytes, nodeExpansionRequired } = await driver.controller.controllerExpandVolume(
    { ...request, secrets: { ...request.secrets } },
    { timeoutMs: settings.timeoutMs, signal },
  )
  const { requiredBytes } = request.capacityRange
  if (capacityBytes < requiredBytes) throw new TooSmall(capacityBytes, target)
  const size = capacityBytes === requiredBytes ? target : formatQuantity(quantityFromBytes(capacityBytes))
  return { size, needsNode: nodeExpansionRequired }
}

/** It says that all went well, and that the volume is not what was asked for. */
class TooSmall extends Error {
  constructor(bytes: bigint, target: string) {
    super(
      `the driver reports success, but a size of ${formatQuantity(quantityFromBytes(bytes))} where ${target} was asked for`,
    )
  }
}

function textOf(error: unknown, secrets: Credentials): string {
  const text = error instanceof CsiError ? error.rpcText : error instanceof Error ? error.message : String(error)
  return redactCredentials(text, secrets)
}

async function notGrown(
  error: unknown,
  because: string,
  { claim, volume }: Subject,
  target: string,
  context: ExpandingContext,
  signal: AbortSignal,
): Promise<Step> {
  const { answers, events, facts, clock } = context
  if (signal.aborted || error instanceof NotLeaderError || error instanceof ApiError) throw error // tells nothing of the volume
  const message = failedText(keyOfObject(volume), facts.name, because)
  events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
  const isTooSmall = error instanceof TooSmall
  if (!isTooSmall && isUncertain(error)) {
    answers.unanswered(claim, target)
    return tried(target, `${because} (the driver may still be at work)`)
  }

  const failure = { message: failureText(because) }
  const now = timeText(clock.nowMs())
  const isInfeasible = isTooSmall || isInfeasibleExpand(error)
  const isInUse = error instanceof CsiError && error.codeName === 'FAILED_PRECONDITION'
  if (isInUse) answers.refusedInUse(claim, target)
  else answers.refused(claim, target)
  // Of a device that has grown already, the claim goes on to say what the node makes of it.
  const isNodes = resizeStateOf(claim)?.startsWith('Node')
  await save([claimNote(claim, isInfeasible && !isNodes ? infeasible(failure, now) : failed(failure, now))], context)
  return tried(target, because, { isSlow: isInfeasible })
}

/** The volume first: until the claim says so too, the driver is asked again and says the same. */
async function saveGrown({ claim, volume }: Subject, reply: Reply, context: ExpandingContext): Promise<Step> {
  const { clock, events, isNodeOnly } = context
  const [said, before] = [volumeCapacity(volume), annotationOf(volume, PRE_RESIZE_CAPACITY)]
  // Where only nodes grow volumes, a smaller size after a refused one is the truth; a device does not shrink.
  const size = isNodeOnly || isLess(said, reply.size) ? reply.size : said
  const isForNode = reply.needsNode && before === undefined && isLess(claimCapacity(claim), size)
  const annotations = {
    ...(isForNode ? { [PRE_RESIZE_CAPACITY]: claimCapacity(claim) } : {}),
    ...context.pace?.changed({ claim, volume }),
  }
  const isNews = isLess(said, size) || isLess(size, said) || Object.keys(annotations).length > 0
  const patch = reply.needsNode ? nodePending(timeText(clock.nowMs())) : completed(size)
  const writes = isNews
    ? [volumeWrite(volume, { size, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) })]
    : []
  const saved = await saveOverEdits(claim, (now) => [...writes, claimWrite(now, patch)], context)
  if (saved) events.record(persistentVolumeClaimKind, saved, reply.needsNode ? needsNode : resized)
  return changed
}

const EDITS_MAX = 5 // in a row, while the driver's answer is being written down; then it is asked again

/** An edit of the request while the driver was at work changes nothing about what it did. */
async function saveOverEdits(
  claim: Claim,
  writesFor: (now: Claim) => Parameters<typeof save>[0],
  context: ExpandingContext,
): Promise<Claim | undefined> {
  const { namespace, name = '', uid } = claim.metadata
  let now = claim
  for (let edits = 0; ; edits++) {
    try {
      return await save(writesFor(now), context)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || edits === EDITS_MAX) throw error
      const read = await context.client.get(persistentVolumeClaimKind, { ...(namespace ? { namespace } : {}), name })
      context.claims.learn(read)
      now = read
      const isSame =
        now.metadata.uid === uid &&
        resizeStateOf(now) === resizeStateOf(claim) &&
        allocatedStorage(now) === allocatedStorage(claim)
      if (!isSame) throw error
    }
  }
}
