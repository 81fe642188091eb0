// Tells pods how far their volumes have come, each thing once: attached, failed, or in somebody's way.
import type { Attachment } from './attachment-index.ts'
import { isAttached, isBeingDeleted } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attached, attachFailed, tellPods, troubleOf } from './events.ts'
import type { Step, VolumeView, Wish } from './plan-volume.ts'

export function reportProgress(view: VolumeView, steps: readonly Step[], context: AttachingContext): void {
  const { told, expected } = context.memory.of(view.name)
  const wished = new Set<string>()
  for (const wish of view.wishes) {
    const there = view.attachments.find(({ attachment }) => attachment.metadata.name === wish.attachmentName)
    if (there && !isBeingDeleted(there.attachment)) {
      wished.add(there.attachment.metadata.uid ?? '')
      reportAttachment(view.name, wish, there.attachment, context)
    }
  }
  for (const uid of expected) if (!wished.has(uid)) expected.delete(uid)

  const present = new Set(view.wishes.map(({ nodeName }) => nodeName))
  for (const nodeName of told.keys()) if (!present.has(nodeName)) told.delete(nodeName)
  for (const step of steps) {
    if (step.do !== 'wait' || !step.tell) continue
    const { wish, trouble } = step.tell
    const words = JSON.stringify([step.because, wish.pods.map(({ metadata }) => metadata.uid)])
    tellOnce(wish, words, context, view.name, () =>
      tellPods(context.events, wish.pods, (pod) => troubleOf(view.name, wish.nodeName, pod, trouble)),
    )
  }
}

function reportAttachment(volumeName: string, wish: Wish, attachment: Attachment, context: AttachingContext): void {
  const { told, expected } = context.memory.of(volumeName)
  const { uid = '' } = attachment.metadata
  if (isAttached(attachment)) {
    told.delete(wish.nodeName)
    if (expected.delete(uid)) tellPods(context.events, wish.pods, () => attached(volumeName))
    return
  }
  expected.add(uid)
  const { attachError } = attachment.status ?? {}
  if (!attachError) return
  const { time = '', message = 'the driver gives no reason' } = attachError
  tellOnce(wish, `${time} ${message}`, context, volumeName, () =>
    tellPods(context.events, wish.pods, () => attachFailed(volumeName, message)),
  )
}

function tellOnce(wish: Wish, words: string, { memory }: AttachingContext, volumeName: string, tell: () => void): void {
  const { told } = memory.of(volumeName)
  if (told.get(wish.nodeName) === words) return
  told.set(wish.nodeName, words)
  tell()
}
