// Moves the attachments of one volume closer to what its pods need: makes those that are missing, deletes those that
// nobody needs. One volume is worked on by one worker at a time, so two nodes never win the same volume.
import type { Stored } from '../../api/kind.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { CommitWrite } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Attachment } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attachedVolumeName } from './node-facts.ts'
import { type Force, planVolume, type Step, type Wait, type Wish } from './plan-volume.ts'
import { readVolume } from './read-volume.ts'
import { reportProgress } from './report-progress.ts'

export async function reconcileVolume(
  volumeName: string,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { memory } = context
  try {
    if (memory.of(volumeName).creation) await settleCreation(volumeName, context, signal)
    const view = readVolume(volumeName, context)
    const steps = planVolume(view, context.forceDetachAfterMs)
    const waits = steps.filter((step) => step.do === 'wait')
    memory.waitFor(
      volumeName,
      waits.flatMap((wait) => (wait.for ? [wait.for] : [])),
    )
    reportProgress(view, steps, context)
    for (const step of steps) {
      const failure = await apply(step, volumeName, context, signal)
      if (failure) return failure
    }
    return outcomeOf(waits)
  } finally {
    memory.tidy(volumeName)
  }
}

function outcomeOf(waits: readonly Wait[]): Outcome {
  if (waits.length === 0) return done
  const because = waits.map((wait) => wait.because).join('; ')
  const soonestMs = Math.min(...waits.map(({ afterMs }) => afterMs ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(soonestMs) ? retryAfter(soonestMs, because) : stuck(because)
}

/** What keeps the rest from being done, if anything. */
async function apply(
  step: Step,
  volumeName: string,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  switch (step.do) {
    case 'wait':
      return undefined
    case 'attach':
      return attach(volumeName, step.wish, context, signal)
    case 'detach':
      return detach(step.attachment, step.force, context)
  }
}

async function attach(
  volumeName: string,
  { nodeName, attachmentName }: Wish,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { client, volumes, memory } = context
  const { driver, volumeHandle } = volumes.get(volumeName)?.spec?.csi ?? {}
  if (!driver || !volumeHandle) return undefined // gone since the plan was made
  memory.beginCreation(volumeName, { name: attachmentName, driver, handle: volumeHandle, nodeName })
  try {
    const { metadata } = await client.create(volumeAttachmentKind, {
      metadata: { name: attachmentName },
      spec: { attacher: driver, nodeName, source: { persistentVolumeName: volumeName } },
    } as VolumeAttachment)
    memory.of(volumeName).expected.add(metadata.uid ?? '')
    await seen(metadata.resourceVersion, volumeName, context, signal)
    return undefined
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 500
    if (code === 409) await settleCreation(volumeName, context, signal)
    else if (code < 500) memory.endCreation(volumeName)
    if (code !== 409) throw error
    return backOff(`attachment ${attachmentName} is there already`)
  }
}

/** A create whose answer did not come may have happened: nothing is decided before it is known. */
async function settleCreation(volumeName: string, context: AttachingContext, signal: AbortSignal): Promise<void> {
  const { client, memory } = context
  const { creation } = memory.of(volumeName)
  if (!creation) return
  try {
    const { metadata } = await client.get(volumeAttachmentKind, { name: creation.name }, { signal })
    await seen(metadata.resourceVersion, volumeName, context, signal)
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 404)) throw error
    memory.endCreation(volumeName)
  }
}

/** The next look at the volume must not be at a past without the attachment. */
async function seen(
  resourceVersion: string | undefined,
  volumeName: string,
  { attachments, memory }: AttachingContext,
  signal: AbortSignal,
): Promise<void> {
  if (await attachments.whenSeen(resourceVersion ?? '0', signal)) memory.endCreation(volumeName)
}

/**
 * First the node is told not to mount the volume any more, in the very state in which it said that it has not mounted
 * it, or in which it was lost or out of service; then the attachment goes. A node whose object is gone cannot be told.
 */
async function detach(
  attachment: Attachment,
  force: Force | undefined,
  context: AttachingContext,
): Promise<Outcome | undefined> {
  const { client, nodes, attachments, volumes, leaving, metrics } = context
  const { name = '', uid } = attachment.metadata
  const { nodeName, source } = attachment.spec
  const node = nodes.get(nodeName)
  const volume = volumes.get(source.persistentVolumeName ?? '')
  const without = node && unreported(node, attachedVolumeName(attachment, volume, node))
  leaving.add(attachment)
  try {
    const remove: CommitWrite = { do: 'delete', kind: volumeAttachmentKind, ref: { name }, uid }
    const left = await client.commit(without ? [without, remove] : [remove])
    const [nodeLeft] = without ? left : []
    if (nodeLeft) nodes.learn(nodeLeft as Stored<Node>)
    const attachmentLeft = left.at(-1)
    if (attachmentLeft) attachments.learn(attachmentLeft as Stored<VolumeAttachment>)
    if (force) metrics?.forcedDetach(force)
    return undefined
  } catch (error) {
    leaving.delete(attachment)
    if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error
    return backOff(`node ${nodeName} or attachment ${name} changed meanwhile`)
  }
}

/** Written also where it changes nothing: a process that was asleep while the node came back must not go on. */
function unreported(node: Readonly<Node>, volumeName: string | undefined): CommitWrite {
  const { name = '', uid, resourceVersion } = node.metadata
  const kept = (node.status?.volumesAttached ?? []).filter((one) => one.name !== volumeName)
  const body = { metadata: { uid, resourceVersion }, status: { volumesAttached: kept.length > 0 ? kept : null } }
  return { do: 'patch', kind: nodeKind, ref: { name }, patch: { type: 'merge', body }, subresource: 'status' }
}
