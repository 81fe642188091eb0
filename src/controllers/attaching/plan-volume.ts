// Plans the attachments of one volume. Pure: desired and existing attachments and the state of their nodes in, steps out.
// Reading is read-volume.ts, applying is reconcile-volume.ts.
//
//   no pod on the node needs it   unmounted → detach
//                                 mounted   → wait; force once the node is out of service or lost for too long
//   a pod on the node needs it    not attached → attach, unless it is a single-node volume attached elsewhere, the node
//                                 is full, or the previous attachment is still being deleted
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { isBeingDeleted } from './attachment-index.ts'

export interface VolumeView {
  readonly name: string
  readonly isSingleNode: boolean
  /** Ordered by the age of their oldest pod: the oldest gets a single-node volume. */
  readonly desired: readonly DesiredAttachment[]
  readonly attachments: readonly AttachmentView[]
}

/** A node with pods that need the volume. */
export interface DesiredAttachment {
  readonly nodeName: string
  /** The deterministic name of the VolumeAttachment. */
  readonly attachmentName: string
  readonly pods: readonly Readonly<Pod>[]
  readonly nodeExists: boolean
  /** Volumes of the driver attached to the node or being attached, and the driver's limit. */
  readonly volumesOnNode: number
  readonly volumesMax: number | undefined
}

export interface AttachmentView {
  readonly attachment: Attachment
  /** False for an attachment that a user created under another name. */
  readonly isOurs: boolean
  /**
   * A node that was deleted, or recreated and has not reported yet, counts as lost, and its volumes as mounted.
   */
  readonly node: 'ready' | 'lost' | 'out of service'
  readonly isMounted: boolean
  /** For how long no pod has needed it while its node is lost. */
  readonly lostForMs: number
}

export type Step =
  | { readonly do: 'attach'; readonly desired: DesiredAttachment }
  | { readonly do: 'detach'; readonly attachment: Attachment; readonly force?: Force }
  | Wait

export type Force = 'timeout' | 'out-of-service'

export interface Wait {
  readonly do: 'wait'
  readonly because: string
  /** What besides the volume's own objects can end the wait: a change of a node, or free capacity on it. */
  readonly for?: { readonly what: 'node' | 'capacity'; readonly nodeName: string }
  readonly afterMs?: number
  /** The problem to report to the pods of a node. */
  readonly report?: { readonly desired: DesiredAttachment; readonly problem: AttachProblem }
}

/** Why a volume cannot be attached for a pod. */
export type AttachProblem =
  | { readonly is: 'elsewhere'; readonly usedBy: readonly Readonly<Pod>[] }
  | { readonly is: 'full'; readonly volumesMax: number }

export function planVolume(view: VolumeView, forceDetachAfterMs: number): Step[] {
  const isDesired = ({ attachment }: AttachmentView) =>
    view.desired.some(({ attachmentName }) => attachmentName === attachment.metadata.name)
  const unneeded = view.attachments.filter((one) => one.isOurs && !isBeingDeleted(one.attachment) && !isDesired(one))
  return [...unneeded.map((one) => planDetach(one, forceDetachAfterMs)), ...planDesired(view)]
}

function planDetach({ attachment, node, isMounted, lostForMs }: AttachmentView, forceAfterMs: number): Step {
  const { nodeName } = attachment.spec
  const wake = { what: 'node', nodeName } as const
  if (!isMounted) return { do: 'detach', attachment } // the normal case
  switch (node) {
    case 'out of service': // the taint guarantees that no pod runs there
      return { do: 'detach', attachment, force: 'out-of-service' }
    case 'ready':
      return { do: 'wait', because: `node ${nodeName} still has the volume mounted`, for: wake }
    case 'lost': {
      if (lostForMs >= forceAfterMs) return { do: 'detach', attachment, force: 'timeout' }
      const because = `node ${nodeName} is not ready and may still have the volume mounted`
      if (!Number.isFinite(forceAfterMs)) return { do: 'wait', because, for: wake }
      const afterMs = forceAfterMs - lostForMs
      return { do: 'wait', because: `${because}; it is force-detached after the timeout`, for: wake, afterMs }
    }
  }
}

function planDesired({ name, isSingleNode, desired, attachments }: VolumeView): Step[] {
  const steps: Step[] = []
  /** For a single-node volume: the node that has it or gets it. */
  let holder = attachments[0]?.attachment.spec.nodeName
  for (const one of desired) {
    const { nodeName, volumesOnNode, volumesMax } = one
    const existing = attachments.find(({ attachment }) => attachment.metadata.name === one.attachmentName)
    if (existing && isBeingDeleted(existing.attachment)) {
      steps.push({
        do: 'wait',
        because: `the volume is being detached from node ${nodeName} and is attached again afterwards`,
      })
    } else if (existing) {
      // attached, or being attached by the attacher
    } else if (isSingleNode && holder !== undefined) {
      const usedBy = desired
        .filter((other) => other.nodeName !== nodeName && isHeldBy(other))
        .flatMap(({ pods }) => pods)
      const because = `volume ${name} is attached to node ${holder} and can be attached to one node only`
      steps.push({ do: 'wait', because, report: { desired: one, problem: { is: 'elsewhere', usedBy } } })
    } else if (!one.nodeExists) {
      const because = `node ${nodeName}, where a pod needs the volume, does not exist`
      steps.push({ do: 'wait', because, for: { what: 'node', nodeName } })
    } else if (volumesMax !== undefined && volumesOnNode >= volumesMax) {
      const because = `node ${nodeName} has reached the driver's limit of ${volumesMax} volumes`
      const wake = { what: 'capacity', nodeName } as const
      steps.push({ do: 'wait', because, for: wake, report: { desired: one, problem: { is: 'full', volumesMax } } })
    } else {
      steps.push({ do: 'attach', desired: one })
      holder = nodeName
    }
  }
  return steps

  function isHeldBy({ nodeName, attachmentName }: DesiredAttachment): boolean {
    return nodeName === holder || attachments.some(({ attachment }) => attachment.metadata.name === attachmentName)
  }
}
