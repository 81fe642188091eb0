// Reconciles the VolumeAttachments of one volume: creates those that pods need, deletes those that no pod needs. Reads
// (read-volume.ts), plans (plan-volume.ts) and applies. The work queue never runs two reconciles of a volume at once.
import type { Stored } from '../../api/kind.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { AwaitedObject } from '../../base/operation-details.ts'
import { type CommitWrite, find } from '../../client/index.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { AttachingContext } from './context.ts'
import { attachedVolumeName } from './node-state.ts'
import { type DesiredAttachment, planVolume, type Step, type Wait } from './plan-volume.ts'
import { readVolume } from './read-volume.ts'
import { reportProgress } from './report-progress.ts'

export async function reconcileVolume(
  volumeName: string,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { states } = context
  try {
    if (states.stateOf(volumeName).creation) await settleCreation(volumeName, context, signal)
    const view = readVolume(volumeName, context)
    const plannedNodes: PlannedNodes = new Map(
      view.attachments.map(({ attachment: { spec } }) => [spec.nodeName, context.nodes.get(spec.nodeName)]),
    )
    const steps = planVolume(view, context.forceDetachAfterMs)
    const waits = steps.filter((step) => step.do === 'wait')
    states.setWaits(
      volumeName,
      waits.flatMap((wait) => (wait.target ? [wait.target] : [])),
    )
    reportProgress(view, steps, context)
    for (const step of steps) {
      const failure = await apply(step, volumeName, plannedNodes, context, signal)
      if (failure) return failure
    }
    return outcomeOf(waits)
  } finally {
    states.removeIfEmpty(volumeName)
  }
}

function outcomeOf(waits: readonly Wait[]): Outcome {
  if (waits.length === 0) return done
  const message = waits.map((wait) => wait.message).join('; ')
  const soonestMs = Math.min(...waits.map(({ afterMs }) => afterMs ?? Number.POSITIVE_INFINITY))
  const waitsFor = waits.map(awaitedObjectOf).find((object) => object !== undefined)
  const details = waitsFor && { waitsFor }
  return Number.isFinite(soonestMs) ? retryAfter(soonestMs, message, details) : stuck(message, details)
}

/** Returns the node, or the pod that uses the volume on another node. */
function awaitedObjectOf({ target, report }: Wait): AwaitedObject | undefined {
  if (target) return { kind: nodeKind.kind, name: target.nodeName }
  const problem = report?.problem
  const user = problem?.is === 'multi-attach' ? problem.users[0] : undefined
  return user && { kind: podKind.kind, namespace: user.metadata.namespace ?? '', name: user.metadata.name ?? '' }
}

/** The nodes of the attachments as the plan has read them, by name; undefined for a node that did not exist. */
type PlannedNodes = Map<string, Readonly<Stored<Node>> | undefined>

/** Returns an outcome if the remaining steps must not be applied, otherwise undefined. */
async function apply(
  step: Step,
  volumeName: string,
  plannedNodes: PlannedNodes,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  switch (step.do) {
    case 'wait':
      return undefined
    case 'attach':
      return attach(volumeName, step.desired, context, signal)
    case 'detach':
      return detach(step, plannedNodes, context)
  }
}

async function attach(
  volumeName: string,
  { nodeName, attachmentName }: DesiredAttachment,
  context: AttachingContext,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { client, volumes, states } = context
  const { driver, volumeHandle } = volumes.get(volumeName)?.spec?.csi ?? {}
  if (!driver || !volumeHandle) return undefined // deleted since the plan
  states.beginCreation(volumeName, { name: attachmentName, driver, handle: volumeHandle, nodeName })
  try {
    const { metadata } = await client.create(volumeAttachmentKind, {
      metadata: { name: attachmentName },
      spec: { attacher: driver, nodeName, source: { persistentVolumeName: volumeName } },
    } as VolumeAttachment)
    states.stateOf(volumeName).unreportedUids.add(metadata.uid)
    await waitForCache(metadata.resourceVersion, volumeName, context, signal)
    return undefined
  } catch (error) {
    if (isAlreadyExists(error)) {
      await settleCreation(volumeName, context, signal)
      return backOff(`attachment ${attachmentName} exists already`)
    }
    if (error instanceof ApiError && error.code < 500) states.endCreation(volumeName) // certainly not created
    throw error
  }
}

/** Checks whether a create request without a response has succeeded, so that the next plan includes the attachment. */
async function settleCreation(volumeName: string, context: AttachingContext, signal: AbortSignal): Promise<void> {
  const { client, states } = context
  const { creation } = states.stateOf(volumeName)
  if (!creation) return
  const createdAttachment = await find(client, volumeAttachmentKind, { name: creation.name }, { signal })
  if (createdAttachment) await waitForCache(createdAttachment.metadata.resourceVersion, volumeName, context, signal)
  else states.endCreation(volumeName)
}

/** Waits until the cache has the attachment, so that the next plan includes it. */
async function waitForCache(
  resourceVersion: string | undefined,
  volumeName: string,
  { attachments, states }: AttachingContext,
  signal: AbortSignal,
): Promise<void> {
  if (await attachments.whenReached(resourceVersion ?? '0', signal)) states.endCreation(volumeName)
}

/**
 * Removes the volume from the node's volumesAttached, on condition that the node has not changed since the plan, and then
 * deletes the attachment. A node agent therefore cannot mount the volume in between.
 */
async function detach(
  { attachment, force }: Extract<Step, { do: 'detach' }>,
  plannedNodes: PlannedNodes,
  context: AttachingContext,
): Promise<Outcome | undefined> {
  const { client, nodes, attachments, volumes, detachingAttachments, metrics } = context
  const { name, uid } = attachment.metadata
  const { nodeName, source } = attachment.spec
  const node = plannedNodes.get(nodeName)
  if (!node && nodes.get(nodeName)) return backOff(`node ${nodeName} was created during the reconcile`)
  const volume = volumes.get(source.persistentVolumeName)
  const nodeStatusPatch = node && patchWithoutVolume(node, attachedVolumeName(attachment, volume, node))
  detachingAttachments.add(attachment)
  try {
    const deletion: CommitWrite = { do: 'delete', kind: volumeAttachmentKind, ref: { name }, uid }
    const results = await client.commit(nodeStatusPatch ? [nodeStatusPatch, deletion] : [deletion])
    const [updatedNode] = nodeStatusPatch ? results : []
    if (updatedNode) {
      nodes.applyWriteResult(updatedNode as Stored<Node>)
      plannedNodes.set(nodeName, updatedNode as Stored<Node>)
    }
    const updatedAttachment = results.at(-1)
    if (updatedAttachment) attachments.applyWriteResult(updatedAttachment as Stored<VolumeAttachment>)
    if (force) metrics?.countForcedDetach(force)
    return undefined
  } catch (error) {
    detachingAttachments.delete(attachment)
    if (!isNotFound(error) && !isConflict(error)) throw error
    return backOff(`node ${nodeName} or attachment ${name} changed during the reconcile`)
  }
}

/**
 * Returns a patch that removes the volume from volumesAttached. It is written even if the list does not change, because
 * its resourceVersion precondition stops a process with a stale cache.
 */
function patchWithoutVolume(node: Readonly<Stored<Node>>, volumeName: string | undefined): CommitWrite {
  const { name, uid, resourceVersion } = node.metadata
  const remaining = (node.status?.volumesAttached ?? []).filter((attached) => attached.name !== volumeName)
  const body = {
    metadata: { uid, resourceVersion },
    status: { volumesAttached: remaining.length > 0 ? remaining : null },
  }
  return { do: 'patch', kind: nodeKind, ref: { name }, patch: { type: 'merge', body }, subresource: 'status' }
}
