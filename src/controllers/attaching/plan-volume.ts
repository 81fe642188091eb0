// What should happen to one volume's attachments, as data. Pure: who needs the volume where, what is attached, and what
// is known of the nodes go in; steps come out. Reading is read-volume.ts, doing is reconcile-volume.ts.
//
//   nobody on the node needs it   unmounted → detach
//                                 mounted   → wait; by force once the node is out of service, or lost for too long
//   a pod on the node needs it    nothing there → attach, unless it may be on one node only and is on another, the node
//                                                 is full, or it is just being detached there
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { isBeingDeleted } from './attachment-index.ts'

export interface VolumeView {
  readonly name: string
  readonly isSingleNode: boolean
  /** Whoever asked first comes first. */
  readonly wishes: readonly Wish[]
  readonly attachments: readonly AttachmentView[]
}

/** A node where pods need the volume. */
export interface Wish {
  readonly nodeName: string
  /** What the attachment is or will be called. */
  readonly attachmentName: string
  readonly pods: readonly Readonly<Pod>[]
  readonly isNodeThere: boolean
  /** Volumes of the driver that are on the node or on their way, and how many it takes at most. */
  readonly volumesThere: number
  readonly volumesMax: number | undefined
}

export interface AttachmentView {
  readonly attachment: Attachment
  /** Not if someone else made it under a name of their own. */
  readonly isOurs: boolean
  /**
   * A node whose object is gone, or new and without a word of its agent, counts as lost, and whatever was there as
   * mounted: nobody can say otherwise.
   */
  readonly node: 'answering' | 'lost' | 'out of service'
  readonly isMounted: boolean
  /** Since nobody needs it and its node is lost, both. */
  readonly lostForMs: number
}

export type Step =
  | { readonly do: 'attach'; readonly wish: Wish }
  | { readonly do: 'detach'; readonly attachment: Attachment; readonly force?: Force }
  | Wait

export type Force = 'timeout' | 'out-of-service'

export interface Wait {
  readonly do: 'wait'
  readonly because: string
  /** What else but the volume's own objects can end it: news of a node, or of how full it is. */
  readonly for?: { readonly what: 'node' | 'room'; readonly nodeName: string }
  readonly afterMs?: number
  /** Whose pods are told about it. */
  readonly tell?: { readonly wish: Wish; readonly trouble: Trouble }
}

/** Why pods do not get their volume. */
export type Trouble =
  | { readonly is: 'elsewhere'; readonly usedBy: readonly Readonly<Pod>[] }
  | { readonly is: 'full'; readonly volumesMax: number }

export function planVolume(view: VolumeView, forceDetachAfterMs: number): Step[] {
  const isWished = ({ attachment }: AttachmentView) =>
    view.wishes.some(({ attachmentName }) => attachmentName === attachment.metadata.name)
  const unwanted = view.attachments.filter((one) => one.isOurs && !isBeingDeleted(one.attachment) && !isWished(one))
  return [...unwanted.map((one) => planUnwanted(one, forceDetachAfterMs)), ...planWishes(view)]
}

function planUnwanted({ attachment, node, isMounted, lostForMs }: AttachmentView, forceAfterMs: number): Step {
  const { nodeName } = attachment.spec
  const news = { what: 'node', nodeName } as const
  if (!isMounted) return { do: 'detach', attachment } // the usual end
  switch (node) {
    case 'out of service': // someone vouches that nothing uses it there
      return { do: 'detach', attachment, force: 'out-of-service' }
    case 'answering':
      return { do: 'wait', because: `node ${nodeName} still has it mounted`, for: news }
    case 'lost': {
      if (lostForMs >= forceAfterMs) return { do: 'detach', attachment, force: 'timeout' }
      const because = `node ${nodeName} is lost and may still have it mounted`
      if (!Number.isFinite(forceAfterMs)) return { do: 'wait', because, for: news }
      const afterMs = forceAfterMs - lostForMs
      return { do: 'wait', because: `${because}; it is detached by force in the end`, for: news, afterMs }
    }
  }
}

function planWishes({ name, isSingleNode, wishes, attachments }: VolumeView): Step[] {
  const steps: Step[] = []
  /** For a volume of one node: where it is, or will be. */
  let holder = attachments[0]?.attachment.spec.nodeName
  for (const wish of wishes) {
    const { nodeName, volumesThere, volumesMax } = wish
    const there = attachments.find(({ attachment }) => attachment.metadata.name === wish.attachmentName)
    if (there && isBeingDeleted(there.attachment)) {
      steps.push({ do: 'wait', because: `it is first detached from node ${nodeName}, then attached again` })
    } else if (there) {
      // attached, or the attacher's to attach
    } else if (isSingleNode && holder !== undefined) {
      const usedBy = wishes
        .filter((other) => other.nodeName !== nodeName && isHeldBy(other))
        .flatMap(({ pods }) => pods)
      const because = `volume ${name} is attached to node ${holder} and can be on one node only`
      steps.push({ do: 'wait', because, tell: { wish, trouble: { is: 'elsewhere', usedBy } } })
    } else if (!wish.isNodeThere) {
      const because = `node ${nodeName}, where a pod needs it, does not exist`
      steps.push({ do: 'wait', because, for: { what: 'node', nodeName } })
    } else if (volumesMax !== undefined && volumesThere >= volumesMax) {
      const because = `node ${nodeName} has all the ${volumesMax} volumes of the driver that it can take`
      const news = { what: 'room', nodeName } as const
      steps.push({ do: 'wait', because, for: news, tell: { wish, trouble: { is: 'full', volumesMax } } })
    } else {
      steps.push({ do: 'attach', wish })
      holder = nodeName
    }
  }
  return steps

  function isHeldBy({ nodeName, attachmentName }: Wish): boolean {
    return nodeName === holder || attachments.some(({ attachment }) => attachment.metadata.name === attachmentName)
  }
}
