// Writes the status of a VolumeAttachment, and removes the attacher's finalizer from it. Every write has the uid as a
// precondition: attachments have deterministic names, so an attachment may be deleted and recreated under the same name.
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError, isNotFound } from '../../../api/status-error.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { done, type Outcome } from '../../../runtime/index.ts'
import type { Attachment } from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'

export const saveAttached = (
  attachment: Attachment,
  publishContext: Readonly<Record<string, string>>,
  context: AttacherContext,
): Promise<Outcome> => {
  const attachmentMetadata = Object.keys(publishContext).length > 0 ? publishContext : null
  return saveStatus(attachment, { attached: true, attachmentMetadata, attachError: null }, context)
}

export const saveDetached = (attachment: Attachment, context: AttacherContext): Promise<Outcome> =>
  saveStatus(attachment, { attached: false, attachmentMetadata: null, detachError: null }, context)

/**
 * Removes the attacher's finalizer, which deletes the attachment. If another finalizer keeps the attachment, its status
 * becomes detached.
 */
export async function removeFinalizer(attachment: Attachment, context: AttacherContext): Promise<Outcome> {
  const { client, attachments, finalizer } = context
  const { name, uid, finalizers = [] } = attachment.metadata
  const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } }
  const updatedAttachment = await client.patch(volumeAttachmentKind, { name }, { type: 'strategic', body })
  if (finalizers.length <= 1) return done
  attachments.applyWriteResult(updatedAttachment)
  return saveDetached(updatedAttachment, context)
}

const MESSAGE_BYTES_MAX = 1_024 // the API server rejects longer messages

export async function saveError(
  field: 'attachError' | 'detachError',
  attachment: Attachment,
  { message, code }: { readonly message: string; readonly code: number | undefined },
  context: AttacherContext,
): Promise<void> {
  const previousValue = context.attachments.get(attachment.metadata.name)?.status?.[field]
  const text = truncate(message)
  // Save a driver error (one with a code) on every attempt: the new time makes the attach-detach controller record an
  // event.
  const isRepeated = previousValue?.message === text && code === undefined
  if (isRepeated) return
  const time = timestamp(context.clock.nowMs())
  try {
    await saveStatus(attachment, { [field]: { time, message: text, errorCode: code ?? null } }, context)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error // an ApiError is ignored: the next attempt writes the status again
  }
}

async function saveStatus(attachment: Attachment, status: object, { client, attachments }: AttacherContext) {
  const { name, uid } = attachment.metadata
  const body = { metadata: { uid }, status }
  try {
    attachments.applyWriteResult(
      await client.patch(volumeAttachmentKind, { name }, { type: 'merge', body }, { subresource: 'status' }),
    )
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return done
}

function truncate(message: string): string {
  const bytes = Buffer.from(message)
  if (bytes.length <= MESSAGE_BYTES_MAX) return message
  const prefix = bytes.subarray(0, MESSAGE_BYTES_MAX - 4).toString('utf8')
  return `${prefix.replace(/\uFFFD+$/, '')}…`
}
