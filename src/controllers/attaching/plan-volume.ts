// Plans the attachments of one volume from the desired and the existing attachments and the state of their nodes. Pure.
// read-volume.ts reads this input; reconcile-volume.ts applies the plan.
//
//   no pod on the node needs the volume   unmounted → detach
//                                         mounted   → wait; force-detach if the node is out of service, or was deleted
//                                                     longer ago than the timeout
//   a pod on the node needs the volume    not attached → attach, unless it is a single-node volume attached to another
//                                                     node, the node is missing or full, or the old attachment is being deleted
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { isBeingDeleted } from './attachment-index.ts'

export interface VolumeView {
  readonly name: string
  readonly isSingleNode: boolean
  /** Ordered by the age of their oldest pod, because a single-node volume is attached for the oldest pod. */
  readonly desiredAttachments: readonly DesiredAttachment[]
  readonly attachments: readonly AttachmentView[]
}

/** A node with pods that need the volume. */
export interface DesiredAttachment {
  readonly nodeName: string
  /** Name of the VolumeAttachment, derived from driver, volumeHandle and node. */
  readonly attachmentName: string
  readonly pods: readonly Readonly<Pod>[]
  readonly nodeExists: boolean
  /** Number of the driver's volumes that are attached to the node or being attached; 0 if volumesMax is undefined. */
  readonly volumesOnNode: number
  /** The driver's limit for the node; undefined if it has none. */
  readonly volumesMax: number | undefined
}

export interface AttachmentView {
  readonly attachment: Attachment
  /** False for an attachment that a user created, which has another name. */
  readonly isManaged: boolean
  /** A node that is not ready is lost, unless it is out of service. */
  readonly nodeState: 'ready' | 'lost' | 'out of service' | 'deleted'
  /** True for every volume on a node that was deleted, or recreated without a status. */
  readonly isMounted: boolean
  /** How long the node has been deleted while no pod needed the attachment. */
  readonly deletedForMs: number
}

export type Step =
  | { readonly do: 'attach'; readonly desired: DesiredAttachment }
  | { readonly do: 'detach'; readonly attachment: Attachment; readonly force?: ForceDetachReason }
  | Wait

export type ForceDetachReason = 'timeout' | 'out-of-service'

export interface Wait {
  readonly do: 'wait'
  readonly message: string
  /** The change that ends the wait, in addition to changes to the volume's own objects. */
  readonly target?: { readonly kind: 'node' | 'capacity'; readonly nodeName: string }
  readonly afterMs?: number
  /** The problem to report to a node's pods. */
  readonly report?: { readonly desired: DesiredAttachment; readonly problem: AttachProblem }
}

/** Why a volume cannot be attached for a pod. */
export type AttachProblem =
  | { readonly is: 'multi-attach'; readonly users: readonly Readonly<Pod>[] }
  | { readonly is: 'full'; readonly volumesMax: number }

export function planVolume(view: VolumeView, forceDetachAfterMs: number): Step[] {
  const isDesired = ({ attachment }: AttachmentView) =>
    view.desiredAttachments.some(({ attachmentName }) => attachmentName === attachment.metadata.name)
  const unneededAttachments = view.attachments.filter(
    (existingAttachment) =>
      existingAttachment.isManaged && !isBeingDeleted(existingAttachment.attachment) && !isDesired(existingAttachment),
  )
  return [...unneededAttachments.map((existing) => planDetach(existing, forceDetachAfterMs)), ...planDesired(view)]
}

function planDetach({ attachment, nodeState, isMounted, deletedForMs }: AttachmentView, forceAfterMs: number): Step {
  const { nodeName } = attachment.spec
  const waitTarget = { kind: 'node', nodeName } as const
  if (!isMounted) return { do: 'detach', attachment }
  switch (nodeState) {
    case 'out of service': // the user who sets the taint has verified that the node is shut down
      return { do: 'detach', attachment, force: 'out-of-service' }
    case 'ready':
      return { do: 'wait', message: `node ${nodeName} still has the volume mounted`, target: waitTarget }
    case 'lost': // its pods may still be running and writing, no matter how long the node has been silent
      return {
        do: 'wait',
        message: `node ${nodeName} is not ready and may still have the volume mounted; after its machine is powered off, run: stowage node fence ${nodeName} --confirm-off`,
        target: waitTarget,
      }
    case 'deleted': {
      if (deletedForMs >= forceAfterMs) return { do: 'detach', attachment, force: 'timeout' }
      const message = `node ${nodeName} was deleted and may still have the volume mounted`
      if (!Number.isFinite(forceAfterMs)) return { do: 'wait', message, target: waitTarget }
      const afterMs = forceAfterMs - deletedForMs
      return {
        do: 'wait',
        message: `${message}; the volume will be force-detached after the timeout`,
        target: waitTarget,
        afterMs,
      }
    }
  }
}

function planDesired({ name, isSingleNode, desiredAttachments, attachments }: VolumeView): Step[] {
  const steps: Step[] = []
  /** A node that has the volume or that this plan attaches it to. */
  let attachedNode = attachments[0]?.attachment.spec.nodeName
  for (const desiredAttachment of desiredAttachments) {
    const { nodeName, volumesOnNode, volumesMax } = desiredAttachment
    const existing = attachments.find(({ attachment }) => attachment.metadata.name === desiredAttachment.attachmentName)
    if (existing && isBeingDeleted(existing.attachment)) {
      steps.push({
        do: 'wait',
        message: `the volume is being detached from node ${nodeName} and will be attached again afterwards`,
      })
    } else if (existing) {
      // attached, or being attached by the attacher
    } else if (isSingleNode && attachedNode !== undefined) {
      const users = desiredAttachments
        .filter((candidate) => candidate.nodeName !== nodeName && isAttachedOn(candidate))
        .flatMap(({ pods }) => pods)
      const message = `volume ${name} is attached to node ${attachedNode} and can be attached to one node only`
      steps.push({
        do: 'wait',
        message,
        report: { desired: desiredAttachment, problem: { is: 'multi-attach', users } },
      })
    } else if (!desiredAttachment.nodeExists) {
      const message = `node ${nodeName}, where a pod needs the volume, does not exist`
      steps.push({ do: 'wait', message, target: { kind: 'node', nodeName } })
    } else if (volumesMax !== undefined && volumesOnNode >= volumesMax) {
      const message = `node ${nodeName} has reached the driver's limit of ${volumesMax} volumes`
      const waitTarget = { kind: 'capacity', nodeName } as const
      steps.push({
        do: 'wait',
        message,
        target: waitTarget,
        report: { desired: desiredAttachment, problem: { is: 'full', volumesMax } },
      })
    } else {
      steps.push({ do: 'attach', desired: desiredAttachment })
      attachedNode = nodeName
    }
  }
  return steps

  function isAttachedOn({ nodeName, attachmentName }: DesiredAttachment): boolean {
    return (
      nodeName === attachedNode || attachments.some(({ attachment }) => attachment.metadata.name === attachmentName)
    )
  }
}
