// Reconciles one VolumeAttachment as planned by plan-attachment.ts: publishes the volume, or unpublishes it if the
// attachment is being deleted. The finalizers on the volume and the attachment are saved before the driver is called, because
// after a crash they show which volumes may be published.

import type { Stored } from '../../../api/kind.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError, isConflict, isNotFound } from '../../../api/status-error.ts'
import { operationDetailsOf } from '../../../base/operation-details.ts'
import type { CommitWrite } from '../../../client/index.ts'
import { CsiError, isUncertain } from '../../../csi/index.ts'
import { backOff, done, NotLeaderError, type Outcome, stuck } from '../../../runtime/index.ts'
import { NODE_ID_ANNOTATION } from '../../../volumes/attachment-names.ts'
import { type Credentials, readCredentials, UnreadableSecretError } from '../../../volumes/credentials.ts'
import { type Attachment, isBeingDeleted } from '../attachment-index.ts'
import {
  AttachError,
  attachedToOtherNode,
  driverMismatch,
  driverNotOnNode,
  volumeBeingDeleted,
  volumeLost,
  volumeMissing,
  volumeReplaced,
} from './attach-error.ts'
import type { AttacherContext } from './attacher-context.ts'
import { type AttachmentVolume, findConflictingAttachment, nodeIdOf, volumeOf } from './attachment-volume.ts'
import { planAttachment } from './plan-attachment.ts'
import { buildPublishRequest, type PublishRequest } from './publish-request.ts'
import { removeFinalizer, saveAttached, saveDetached, saveError } from './save-status.ts'

export async function reconcileAttachment(
  name: string,
  context: AttacherContext,
  requeue: (attachmentName: string) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const attachment = context.attachments.get(name)
  const isUnlisted = context.unlistedNames.delete(name)
  if (!attachment || attachment.spec.attacher !== context.facts.name) return done
  const lockKey = lockKeyOf(attachment, context)
  if (!context.locks.tryLock(lockKey, name)) return stuck(`another attachment of volume ${lockKey} is in progress`)
  try {
    return await apply(attachment, isUnlisted, context, signal)
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the attachment or its volume changed during the reconcile')
    throw error
  } finally {
    for (const waitingName of context.locks.release(lockKey)) requeue(waitingName)
  }
}

/** Whether the attachment is of another attacher, or has the state that it should have. */
export function isAttachmentSettled(name: string, context: AttacherContext): boolean {
  const attachment = context.attachments.get(name)
  if (!attachment || context.unlistedNames.has(name)) return false
  return attachment.spec.attacher !== context.facts.name || planAttachment(attachment, context).do === 'nothing'
}

const lockKeyOf = (attachment: Attachment, context: AttacherContext): string =>
  volumeOf(attachment, context)?.spec.csi?.volumeHandle ?? attachment.spec.source.persistentVolumeName ?? ''

async function apply(
  attachment: Attachment,
  isUnlisted: boolean,
  context: AttacherContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const action = planAttachment(attachment, context, isUnlisted)
  switch (action.do) {
    case 'nothing':
      return done
    case 'publish':
      return publish(attachment, context, signal)
    case 'unpublish':
      return unpublish(attachment, context, signal)
    case 'markAttached':
      return saveAttached(attachment, {}, context)
    case 'markDetached':
      return saveDetached(attachment, context)
    case 'removeFinalizer':
      return removeFinalizer(attachment, context)
  }
}

async function publish(attachment: Attachment, context: AttacherContext, signal: AbortSignal): Promise<Outcome> {
  try {
    const { volume, request, nodeId } = preparePublish(attachment, context)
    const credentials = await readPublishCredentials(volume, context, signal)
    await unpublishFromOldNode(attachment, request.volumeId, nodeId, credentials, context, signal)
    const savedAttachment = await addFinalizers(attachment, volume, nodeId, context)
    if (isBeingDeleted(savedAttachment)) return backOff('the attachment is being deleted: detach it instead')

    const { timeoutMs } = context.settings
    context.election?.assertStillLeader()
    const response = await context.driver.controller.controllerPublishVolume(
      { ...request, nodeId, secrets: credentials },
      { timeoutMs, signal },
    )
    return await saveAttached(savedAttachment, response.publishContext, context)
  } catch (error) {
    return saveFailure('attachError', attachment, error, context, signal)
  }
}

/** Checks the preconditions of a publish and builds the request. Throws an AttachError if a precondition is not met. */
function preparePublish(
  attachment: Attachment,
  context: AttacherContext,
): { volume: AttachmentVolume; request: PublishRequest; nodeId: string } {
  const { facts, settings } = context
  const { nodeName, source } = attachment.spec
  const volume = volumeOf(attachment, context)
  if (!volume) {
    const name = source.persistentVolumeName ?? ''
    throw context.volumes.get(name) ? volumeReplaced(name) : volumeMissing(name)
  }
  if (volume.object && isBeingDeleted(volume.object)) throw volumeBeingDeleted(volume.name)
  if (volume.spec.csi?.driver !== facts.name) throw driverMismatch(`volume ${volume.name}`, facts.name)
  const nodeId = nodeIdOf(nodeName, context)
  if (nodeId === undefined) throw driverNotOnNode(nodeName, facts.name)
  const conflictingAttachment = findConflictingAttachment(attachment, volume, context)
  if (conflictingAttachment) throw attachedToOtherNode(volume.name, conflictingAttachment)
  return { volume, nodeId, request: buildPublishRequest(volume.spec, facts, settings.defaultFsType) }
}

/** Unpublishes from the previous node ID if the node was recreated: the volume may still be published there. */
async function unpublishFromOldNode(
  attachment: Attachment,
  volumeId: string,
  nodeId: string,
  secrets: Credentials,
  { driver, finalizer, settings, election }: AttacherContext,
  signal: AbortSignal,
): Promise<void> {
  const { annotations = {}, finalizers = [] } = attachment.metadata
  const oldNodeId = annotations[NODE_ID_ANNOTATION]
  if (oldNodeId === undefined || oldNodeId === nodeId || !finalizers.includes(finalizer)) return
  election?.assertStillLeader()
  const { timeoutMs } = settings
  await driver.controller.controllerUnpublishVolume({ volumeId, nodeId: oldNodeId, secrets }, { timeoutMs, signal })
}

/** Saves the finalizers and the node ID. From this write on the volume counts as published until it is unpublished. */
async function addFinalizers(
  attachment: Attachment,
  { object }: AttachmentVolume,
  nodeId: string,
  { client, finalizer, volumes, attachments }: AttacherContext,
): Promise<Attachment> {
  const writes: CommitWrite[] = []
  if (object && !object.metadata.finalizers?.includes(finalizer)) {
    const ref = { name: object.metadata.name }
    const body = { metadata: { uid: object.metadata.uid, finalizers: [finalizer] } }
    writes.push({ do: 'patch', kind: persistentVolumeKind, ref, patch: { type: 'strategic', body } })
  }
  const { name, uid, finalizers, annotations } = attachment.metadata
  if (!finalizers?.includes(finalizer) || annotations?.[NODE_ID_ANNOTATION] !== nodeId) {
    const body = { metadata: { uid, finalizers: [finalizer], annotations: { [NODE_ID_ANNOTATION]: nodeId } } }
    writes.push({ do: 'patch', kind: volumeAttachmentKind, ref: { name }, patch: { type: 'strategic', body } })
  }
  if (writes.length === 0) return attachment
  const results = await client.commit(writes)
  let savedAttachment = attachment
  for (const [index, result] of results.entries()) {
    if (writes[index]?.kind === persistentVolumeKind) volumes.applyWriteResult(result as Stored<PersistentVolume>)
    else {
      savedAttachment = result as Stored<VolumeAttachment>
      attachments.applyWriteResult(savedAttachment)
    }
  }
  return savedAttachment
}

async function unpublish(attachment: Attachment, context: AttacherContext, signal: AbortSignal): Promise<Outcome> {
  const { driver, facts, settings, election } = context
  const { nodeName, source } = attachment.spec
  try {
    const volume = volumeOf(attachment, context)
    if (!volume) throw volumeLost(source.persistentVolumeName ?? '')
    if (volume.spec.csi?.driver !== facts.name) throw driverMismatch(`volume ${volume.name}`, facts.name)
    // The node ID at publish time: the node may have been deleted or recreated since.
    const nodeId = attachment.metadata.annotations?.[NODE_ID_ANNOTATION] ?? nodeIdOf(nodeName, context)
    if (nodeId === undefined) throw driverNotOnNode(nodeName, facts.name)
    const credentials = await readUnpublishCredentials(volume, context, signal)
    election?.assertStillLeader()
    await driver.controller.controllerUnpublishVolume(
      { volumeId: volume.spec.csi.volumeHandle, nodeId, secrets: credentials },
      { timeoutMs: settings.timeoutMs, signal },
    )
    return await removeFinalizer(attachment, context)
  } catch (error) {
    return saveFailure('detachError', attachment, error, context, signal)
  }
}

async function readPublishCredentials(
  { spec }: AttachmentVolume,
  { client }: AttacherContext,
  signal: AbortSignal,
): Promise<Credentials> {
  const { namespace = '', name = '' } = spec.csi?.controllerPublishSecretRef ?? {}
  return name ? readCredentials(client, { namespace, name }, signal) : {}
}

/**
 * Returns no credentials if the Secret is missing, forbidden or not text: the driver decides whether it can unpublish
 * without them.
 */
async function readUnpublishCredentials(
  volume: AttachmentVolume,
  context: AttacherContext,
  signal: AbortSignal,
): Promise<Credentials> {
  try {
    return await readPublishCredentials(volume, context, signal)
  } catch (error) {
    if (error instanceof UnreadableSecretError && !error.isTransient) return {}
    throw error
  }
}

async function saveFailure(
  field: 'attachError' | 'detachError',
  attachment: Attachment,
  error: unknown,
  context: AttacherContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const isUnrelated = error instanceof ApiError || error instanceof NotLeaderError || signal.aborted
  if (isUnrelated || !(error instanceof Error)) throw error // neither an AttachError nor a response of the driver
  const message = error instanceof CsiError ? error.rpcText : error.message
  await saveError(field, attachment, { message, code: error instanceof CsiError ? error.code : undefined }, context)
  if (error instanceof AttachError) return stuck(message, error.waitsFor && { waitsFor: error.waitsFor })
  const isPending = error instanceof CsiError && isUncertain(error)
  const suffix = isPending ? ' (the driver may still be working on it)' : ''
  return backOff(message + suffix, operationDetailsOf(error))
}
