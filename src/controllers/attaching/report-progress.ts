// Records events on a volume's pods: attached, attach failed, or cannot be attached.
import type { Attachment } from './attachment-index.ts'
import { isAttached, isBeingDeleted } from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { attachFailed, attachProblem, attachSucceeded, recordOnPods } from './events.ts'
import type { DesiredAttachment, Step, VolumeView } from './plan-volume.ts'

export function reportProgress(view: VolumeView, steps: readonly Step[], context: AttachingContext): void {
  const { reportedProblems, unreportedUids } = context.states.stateOf(view.name)
  const existingUids = new Set<string>()
  for (const desired of view.desiredAttachments) {
    const match = view.attachments.find(({ attachment }) => attachment.metadata.name === desired.attachmentName)
    if (match && !isBeingDeleted(match.attachment)) {
      existingUids.add(match.attachment.metadata.uid)
      reportAttachment(view.name, desired, match.attachment, context)
    }
  }
  for (const uid of unreportedUids) if (!existingUids.has(uid)) unreportedUids.delete(uid)

  const desiredNodes = new Set(view.desiredAttachments.map(({ nodeName }) => nodeName))
  for (const nodeName of reportedProblems.keys()) if (!desiredNodes.has(nodeName)) reportedProblems.delete(nodeName)
  for (const step of steps) {
    if (step.do !== 'wait' || !step.report) continue
    const { desired, problem } = step.report
    const content = JSON.stringify([step.message, desired.pods.map(({ metadata }) => metadata.uid)])
    reportOnce(desired, content, context, view.name, () =>
      recordOnPods(context.events, desired.pods, (pod) => attachProblem(view.name, desired.nodeName, pod, problem)),
    )
  }
}

function reportAttachment(
  volumeName: string,
  desired: DesiredAttachment,
  attachment: Attachment,
  context: AttachingContext,
): void {
  const { reportedProblems, unreportedUids } = context.states.stateOf(volumeName)
  const { uid } = attachment.metadata
  if (isAttached(attachment)) {
    reportedProblems.delete(desired.nodeName)
    if (unreportedUids.delete(uid)) recordOnPods(context.events, desired.pods, () => attachSucceeded(volumeName))
    return
  }
  unreportedUids.add(uid)
  const { attachError } = attachment.status ?? {}
  if (!attachError) return
  const { time = '', message = 'the driver reported no reason' } = attachError
  reportOnce(desired, `${time} ${message}`, context, volumeName, () =>
    recordOnPods(context.events, desired.pods, () => attachFailed(volumeName, message)),
  )
}

function reportOnce(
  desired: DesiredAttachment,
  content: string,
  { states }: AttachingContext,
  volumeName: string,
  record: () => void,
): void {
  const { reportedProblems } = states.stateOf(volumeName)
  if (reportedProblems.get(desired.nodeName) === content) return
  reportedProblems.set(desired.nodeName, content)
  record()
}
