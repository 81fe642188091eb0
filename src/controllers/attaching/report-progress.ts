// Records events on pods about their volumes, each once: attached, failed, or attached elsewhere.
import type { Attachment } from './attachment-index.ts'
import { isAttached, isBeingDeleted } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attached, attachFailed, problemEvent, recordOnPods } from './events.ts'
import type { DesiredAttachment, Step, VolumeView } from './plan-volume.ts'

export function reportProgress(view: VolumeView, steps: readonly Step[], context: AttachingContext): void {
  const { reported, pending } = context.memory.of(view.name)
  const existing = new Set<string>()
  for (const desired of view.desired) {
    const found = view.attachments.find(({ attachment }) => attachment.metadata.name === desired.attachmentName)
    if (found && !isBeingDeleted(found.attachment)) {
      existing.add(found.attachment.metadata.uid)
      reportAttachment(view.name, desired, found.attachment, context)
    }
  }
  for (const uid of pending) if (!existing.has(uid)) pending.delete(uid)

  const present = new Set(view.desired.map(({ nodeName }) => nodeName))
  for (const nodeName of reported.keys()) if (!present.has(nodeName)) reported.delete(nodeName)
  for (const step of steps) {
    if (step.do !== 'wait' || !step.report) continue
    const { desired, problem } = step.report
    const text = JSON.stringify([step.because, desired.pods.map(({ metadata }) => metadata.uid)])
    reportOnce(desired, text, context, view.name, () =>
      recordOnPods(context.events, desired.pods, (pod) => problemEvent(view.name, desired.nodeName, pod, problem)),
    )
  }
}

function reportAttachment(
  volumeName: string,
  desired: DesiredAttachment,
  attachment: Attachment,
  context: AttachingContext,
): void {
  const { reported, pending } = context.memory.of(volumeName)
  const { uid } = attachment.metadata
  if (isAttached(attachment)) {
    reported.delete(desired.nodeName)
    if (pending.delete(uid)) recordOnPods(context.events, desired.pods, () => attached(volumeName))
    return
  }
  pending.add(uid)
  const { attachError } = attachment.status ?? {}
  if (!attachError) return
  const { time = '', message = 'the driver reported no reason' } = attachError
  reportOnce(desired, `${time} ${message}`, context, volumeName, () =>
    recordOnPods(context.events, desired.pods, () => attachFailed(volumeName, message)),
  )
}

function reportOnce(
  desired: DesiredAttachment,
  text: string,
  { memory }: AttachingContext,
  volumeName: string,
  record: () => void,
): void {
  const { reported } = memory.of(volumeName)
  if (reported.get(desired.nodeName) === text) return
  reported.set(desired.nodeName, text)
  record()
}
