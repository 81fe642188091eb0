// Moves one attachment closer to what it says: published while it is wanted, unpublished before it goes. Intent before
// effect: the finalizers on volume and attachment are saved before the driver is asked, so whatever dies, the next
// process knows what may be published.

import type { Stored } from '../../../api/kind.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { CommitWrite } from '../../../client/index.ts'
import { CsiError, isUncertain, redactCredentials } from '../../../csi/index.ts'
import { backOff, done, NotLeaderError, type Outcome, stuck } from '../../../runtime/index.ts'
import { NODE_ID } from '../../../volumes/attachment-names.ts'
import { type Credentials, readCredentials } from '../../../volumes/credentials.ts'
import { type Attachment, isBeingDeleted } from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'
import { type AttachmentVolume, otherHolder, volumeOf } from './attachment-volume.ts'
import { planAttachment } from './plan-attachment.ts'
import { type PublishFacts, publishFacts } from './publish-request.ts'
import { saveAttached, saveDetached, saveError, withoutFinalizer } from './save-status.ts'
import {
  attachedElsewhere,
  nodeUnknown,
  notOfDriver,
  Trouble,
  volumeGoing,
  volumeLost,
  volumeMissing,
  volumeReplaced,
} from './trouble.ts'

export async function reconcileAttachment(
  name: string,
  context: AttacherContext,
  wake: (attachmentName: string) => void,
  signal: AbortSignal,
): Promise<Outcome> {
  const attachment = context.attachments.get(name)
  if (!attachment || attachment.spec.attacher !== context.facts.name) return done
  const volume = turnOf(attachment, context)
  if (!context.turns.take(volume, name)) return stuck(`another attachment of volume ${volume} is being worked on`)
  try {
    return await act(attachment, context, signal)
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return done // deleted meanwhile
    if (error instanceof ApiError && error.code === 409)
      return backOff('the attachment or its volume changed meanwhile')
    throw error
  } finally {
    for (const other of context.turns.release(volume)) wake(other)
  }
}

const turnOf = (attachment: Attachment, context: AttacherContext): string =>
  volumeOf(attachment, context)?.spec.csi?.volumeHandle ?? attachment.spec.source.persistentVolumeName ?? ''

async function act(attachment: Attachment, context: AttacherContext, signal: AbortSignal): Promise<Outcome> {
  const action = planAttachment(attachment, context)
  switch (action.do) {
    case 'nothing':
      return done
    case 'publish':
      return publish(attachment, context, signal)
    case 'unpublish':
      return unpublish(attachment, context, signal)
    case 'sayAttached':
      return saveAttached(attachment, {}, context)
    case 'sayDetached':
      return saveDetached(attachment, context)
    case 'letGo':
      return withoutFinalizer(attachment, context)
  }
}

async function publish(attachment: Attachment, context: AttacherContext, signal: AbortSignal): Promise<Outcome> {
  let credentials: Credentials = {}
  try {
    const { volume, request, nodeId } = preparePublish(attachment, context)
    credentials = await credentialsFor(volume, context, signal)
    await leaveOtherNode(attachment, request.volumeId, nodeId, credentials, context, signal)
    const held = await saveIntent(attachment, volume, nodeId, context)
    if (isBeingDeleted(held)) return backOff('it is to be detached instead')

    const { timeoutMs } = context.settings
    context.election?.assertStillLeader()
    const answer = await context.driver.controller.controllerPublishVolume(
      { ...request, nodeId, secrets: credentials },
      { timeoutMs, signal },
    )
    return await saveAttached(held, answer.publishContext, context)
  } catch (error) {
    return failed('attachError', attachment, error, { credentials, signal }, context)
  }
}

/** Everything that can be known before anything is changed. Throws a Trouble. */
function preparePublish(
  attachment: Attachment,
  context: AttacherContext,
): { volume: AttachmentVolume; request: PublishFacts; nodeId: string } {
  const { facts, settings } = context
  const { nodeName, source } = attachment.spec
  const volume = volumeOf(attachment, context)
  if (!volume) {
    const name = source.persistentVolumeName ?? ''
    throw context.volumes.get(name) ? volumeReplaced(name) : volumeMissing(name)
  }
  if (volume.object && isBeingDeleted(volume.object)) throw volumeGoing(volume.name)
  if (volume.spec.csi?.driver !== facts.name) throw notOfDriver(`volume ${volume.name}`, facts.name)
  const nodeId = nodeIdIn(nodeName, context)
  if (nodeId === undefined) throw nodeUnknown(nodeName, facts.name)
  const holder = otherHolder(attachment, volume, context)
  if (holder) throw attachedElsewhere(volume.name, holder.spec.nodeName)
  return { volume, nodeId, request: publishFacts(volume.spec, facts, settings.defaultFsType) }
}

/** A node that was made anew under its old name is another one to the driver, and the volume may be on the old one. */
async function leaveOtherNode(
  attachment: Attachment,
  volumeId: string,
  nodeId: string,
  secrets: Credentials,
  { driver, finalizer, settings, election }: AttacherContext,
  signal: AbortSignal,
): Promise<void> {
  const { annotations = {}, finalizers = [] } = attachment.metadata
  const before = annotations[NODE_ID]
  if (before === undefined || before === nodeId || !finalizers.includes(finalizer)) return
  election?.assertStillLeader()
  const { timeoutMs } = settings
  await driver.controller.controllerUnpublishVolume({ volumeId, nodeId: before, secrets }, { timeoutMs, signal })
}

/** From here on the volume counts as published, until the driver has said that it is not. */
async function saveIntent(
  attachment: Attachment,
  { object }: AttachmentVolume,
  nodeId: string,
  { client, finalizer, volumes, attachments }: AttacherContext,
): Promise<Attachment> {
  const writes: CommitWrite[] = []
  if (object && !object.metadata.finalizers?.includes(finalizer)) {
    const { name = '', uid } = object.metadata
    const body = { metadata: { uid, finalizers: [finalizer] } }
    writes.push({ do: 'patch', kind: persistentVolumeKind, ref: { name }, patch: { type: 'strategic', body } })
  }
  const { name = '', uid, finalizers, annotations } = attachment.metadata
  if (!finalizers?.includes(finalizer) || annotations?.[NODE_ID] !== nodeId) {
    const body = { metadata: { uid, finalizers: [finalizer], annotations: { [NODE_ID]: nodeId } } }
    writes.push({ do: 'patch', kind: volumeAttachmentKind, ref: { name }, patch: { type: 'strategic', body } })
  }
  if (writes.length === 0) return attachment
  const left = await client.commit(writes)
  let held = attachment
  for (const [index, one] of left.entries()) {
    if (writes[index]?.kind === persistentVolumeKind) volumes.learn(one as Stored<PersistentVolume>)
    else {
      const written = one as Stored<VolumeAttachment>
      held = written
      attachments.learn(written)
    }
  }
  return held
}

async function unpublish(attachment: Attachment, context: AttacherContext, signal: AbortSignal): Promise<Outcome> {
  const { driver, facts, settings, election } = context
  const { nodeName, source } = attachment.spec
  let credentials: Credentials = {}
  try {
    const volume = volumeOf(attachment, context)
    if (!volume) throw volumeLost(source.persistentVolumeName ?? '')
    if (volume.spec.csi?.driver !== facts.name) throw notOfDriver(`volume ${volume.name}`, facts.name)
    // The name it was published with; the node may be gone, or another one by now.
    const nodeId = attachment.metadata.annotations?.[NODE_ID] ?? nodeIdIn(nodeName, context)
    if (nodeId === undefined) throw nodeUnknown(nodeName, facts.name)
    credentials = await credentialsForLeaving(volume, context, signal)
    election?.assertStillLeader()
    await driver.controller.controllerUnpublishVolume(
      { volumeId: volume.spec.csi.volumeHandle, nodeId, secrets: credentials },
      { timeoutMs: settings.timeoutMs, signal },
    )
    return await withoutFinalizer(attachment, context)
  } catch (error) {
    return failed('detachError', attachment, error, { credentials, signal }, context)
  }
}

const nodeIdIn = (nodeName: string, { csiNodes, facts }: AttacherContext): string | undefined =>
  csiNodes.get(nodeName)?.spec.drivers.find(({ name }) => name === facts.name)?.nodeID

async function credentialsFor(
  { spec }: AttachmentVolume,
  { client }: AttacherContext,
  signal: AbortSignal,
): Promise<Credentials> {
  const { namespace = '', name = '' } = spec.csi?.controllerPublishSecretRef ?? {}
  return name ? readCredentials(client, { namespace, name }, signal) : {}
}

/** A secret that is gone does not keep a volume attached for ever: the driver says whether it can do without. */
async function credentialsForLeaving(
  volume: AttachmentVolume,
  context: AttacherContext,
  signal: AbortSignal,
): Promise<Credentials> {
  try {
    return await credentialsFor(volume, context, signal)
  } catch (error) {
    if ((error as { isGone?: boolean }).isGone) return {}
    throw error
  }
}

/** Written on the attachment, for people and for whoever waits for it. */
async function failed(
  field: 'attachError' | 'detachError',
  attachment: Attachment,
  error: unknown,
  { credentials, signal }: { readonly credentials: Credentials; readonly signal: AbortSignal },
  context: AttacherContext,
): Promise<Outcome> {
  const isOurOwn = error instanceof ApiError || error instanceof NotLeaderError || signal.aborted
  if (isOurOwn || !(error instanceof Error)) throw error // says nothing about the volume
  const text = error instanceof CsiError ? error.rpcText : error.message
  const message = redactCredentials(text, credentials)
  await saveError(field, attachment, { message, code: error instanceof CsiError ? error.code : undefined }, context)
  if (error instanceof Trouble && error.isStuck) return stuck(message)
  const mayGoOn = error instanceof CsiError && isUncertain(error)
  return backOff(mayGoOn ? `${message} (the driver may still be at work)` : message)
}
