// Plans the next step of an attachment. Pure. The finalizer means that the volume may be published. It is added before
// ControllerPublishVolume is called and removed after ControllerUnpublishVolume has succeeded.
//
//                    exists                                   being deleted
//   finalizer        publish until attached, or if unlisted   unpublish
//   no finalizer     publish, even if the status is attached  mark as detached if the status is attached
//   driver without PUBLISH_UNPUBLISH_VOLUME: mark as attached; if being deleted, remove a finalizer left by an earlier driver version
import { type Attachment, isAttached, isBeingDeleted } from '../attachment-index.ts'

export type AttachmentAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'publish' }
  | { readonly do: 'unpublish' }
  | { readonly do: 'markAttached' }
  | { readonly do: 'markDetached' }
  | { readonly do: 'removeFinalizer' }

export function planAttachment(
  attachment: Attachment,
  { finalizer, canPublish }: { readonly finalizer: string; readonly canPublish: boolean },
  /** Whether the driver does not list the volume as published on the node. */
  isUnlisted = false,
): AttachmentAction {
  const hasFinalizer = attachment.metadata.finalizers?.includes(finalizer) ?? false
  if (isBeingDeleted(attachment)) {
    if (hasFinalizer) return { do: canPublish ? 'unpublish' : 'removeFinalizer' }
    return { do: canPublish && isAttached(attachment) ? 'markDetached' : 'nothing' }
  }
  if (!canPublish) return { do: isAttached(attachment) ? 'nothing' : 'markAttached' }
  return { do: isAttached(attachment) && hasFinalizer && !isUnlisted ? 'nothing' : 'publish' }
}
