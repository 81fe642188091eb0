// What a node's object says about attaching: whether it answers, whether it is out of service, and what it has mounted.
import type { Node } from '../../api/kinds/node/node-schema.ts'
import {
  attachedVolumeNameOf,
  attachmentNameOf,
  OUT_OF_SERVICE_TAINT,
  parseAttachedVolumeName,
} from '../../volumes/attachment-names.ts'
import { type Attachment, isMadeFor, type Volume } from './attachment-index.ts'

export const isReady = ({ status }: Readonly<Node>): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false

export const isOutOfService = (node: Readonly<Node> | undefined): boolean =>
  node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT) ?? false

/**
 * An object that someone made anew in the agent's absence says nothing yet, also not that nothing is mounted. One that
 * was there before the attachment, and never said a word, has no agent that could mount.
 */
export const isMadeAnew = (node: Readonly<Node>, { metadata }: Attachment): boolean =>
  !hasReported(node) && (node.metadata.creationTimestamp ?? '') > (metadata.creationTimestamp ?? '')

export const hasReported = ({ status }: Readonly<Node>): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason !== NEVER_UPDATED) ?? false

/** What a node that does not report is called after a while. */
const NEVER_UPDATED = 'NodeStatusNeverUpdated'

/** Node agents report a volume before they mount it and until they have unmounted it. */
export const isMounted = (node: Readonly<Node>, volumeName: string | undefined): boolean =>
  volumeName !== undefined && (node.status?.volumesInUse?.includes(volumeName) ?? false)

/**
 * What an attachment's volume is called on its node. If the volume's object is gone, or is another of its name, its handle
 * is only known from what the node itself says about it.
 */
export function attachedVolumeName(
  attachment: Attachment,
  volume: Volume | undefined,
  node: Readonly<Node> | undefined,
): string | undefined {
  const { attacher, nodeName } = attachment.spec
  if (volume?.spec?.csi && isMadeFor(attachment, volume))
    return attachedVolumeNameOf({ driver: attacher, handle: volume.spec.csi.volumeHandle })
  const { volumesInUse = [], volumesAttached = [] } = node?.status ?? {}
  return [...volumesInUse, ...volumesAttached.map(({ name }) => name)].find((name) => {
    const facts = parseAttachedVolumeName(name)
    return facts && attachmentNameOf({ ...facts, nodeName }) === attachment.metadata.name
  })
}

/** Nothing else about a node decides when a volume may leave it. */
export const isAnotherNodeState = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  isReady(next) !== isReady(old) ||
  hasReported(next) !== hasReported(old) ||
  isOutOfService(next) !== isOutOfService(old) ||
  next.status?.volumesInUse?.join() !== old.status?.volumesInUse?.join()
