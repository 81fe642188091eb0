// What an attachment needs from its attacher. Pure. The finalizer says that the volume may be published: it is there
// before the driver is asked, and goes only when the driver has said that it is not published any more.
//
//                    wanted                                  being deleted
//   finalizer        publish until attached                  unpublish
//   no finalizer     publish; also what only looks attached  done, and said so
//   driver that has nothing to publish: attached by saying so; a finalizer of earlier days is let go
import { type Attachment, isAttached, isBeingDeleted } from '../attachment-index.ts'

export type AttachmentAction =
  | { readonly do: 'nothing' }
  | { readonly do: 'publish' }
  | { readonly do: 'unpublish' }
  | { readonly do: 'sayAttached' }
  | { readonly do: 'sayDetached' }
  | { readonly do: 'letGo' }

export function planAttachment(
  attachment: Attachment,
  { finalizer, canPublish }: { readonly finalizer: string; readonly canPublish: boolean },
): AttachmentAction {
  const isHeld = attachment.metadata.finalizers?.includes(finalizer) ?? false
  if (isBeingDeleted(attachment)) {
    if (isHeld) return { do: canPublish ? 'unpublish' : 'letGo' }
    return { do: canPublish && isAttached(attachment) ? 'sayDetached' : 'nothing' }
  }
  if (!canPublish) return { do: isAttached(attachment) ? 'nothing' : 'sayAttached' }
  return { do: isAttached(attachment) && isHeld ? 'nothing' : 'publish' }
}
