// The state of a node that attach and detach depend on: ready, out of service, recreated, and its mounted volumes. Pure.
import { isOutOfService as hasOutOfServiceTaint } from '../../api/kinds/node/fencing.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { attachedVolumeNameOf, attachmentNameOf, parseAttachedVolumeName } from '../../volumes/attachment-names.ts'
import { type Attachment, belongsTo, type Volume } from './attachment-index.ts'

export const isReady = ({ status }: Readonly<Node>): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false

/**
 * Whether the node has the out-of-service taint and is not ready. A node that reports Ready is running and unmounts its
 * volumes itself, even if it has the taint.
 */
export const isOutOfService = (node: Readonly<Node> | undefined): boolean =>
  node !== undefined && hasOutOfServiceTaint(node) && !isReady(node)

/**
 * Whether the Node is younger than the attachment and has no status yet. It may have been recreated while its agent was
 * down, so its volumes may still be mounted.
 */
export const isRecreated = (node: Readonly<Node>, { metadata }: Attachment): boolean =>
  !hasReported(node) && (node.metadata.creationTimestamp ?? '') > (metadata.creationTimestamp ?? '')

const hasReported = ({ status }: Readonly<Node>): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason !== NEVER_UPDATED) ?? false

/** The reason that node-lifecycle sets on a node that never reported a status. */
const NEVER_UPDATED = 'NodeStatusNeverUpdated'

/** Node agents list a volume in volumesInUse before they mount it and until they have unmounted it. */
export const isMounted = (node: Readonly<Node>, volumeName: string | undefined): boolean =>
  volumeName !== undefined && (node.status?.volumesInUse?.includes(volumeName) ?? false)

/**
 * Returns the name of an attachment's volume in the node's status. If the PersistentVolume was deleted or recreated, only
 * that status contains the volumeHandle.
 */
export function attachedVolumeName(
  attachment: Attachment,
  volume: Volume | undefined,
  node: Readonly<Node> | undefined,
): string | undefined {
  const { attacher, nodeName } = attachment.spec
  const { csi } = volume?.spec ?? {}
  if (volume && csi) {
    const knownName = knownNames.get(attachment)
    if (knownName?.handle === csi.volumeHandle) return knownName.name
    if (belongsTo(attachment, volume)) {
      const name = attachedVolumeNameOf({ driver: attacher, handle: csi.volumeHandle })
      knownNames.set(attachment, { handle: csi.volumeHandle, name })
      return name
    }
  }
  const { volumesInUse = [], volumesAttached = [] } = node?.status ?? {}
  return [...volumesInUse, ...volumesAttached.map(({ name }) => name)].find((name) => {
    const parsedName = parseAttachedVolumeName(name)
    return parsedName && attachmentNameOf({ ...parsedName, nodeName }) === attachment.metadata.name
  })
}

/** The names of volumes that belong to their attachments: all attachments of a node are read for each change to one. */
const knownNames = new WeakMap<Attachment, { readonly handle: string; readonly name: string }>()

/** Whether a field changed that decides when a volume may be detached. */
export const isNodeStateChanged = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  isReady(next) !== isReady(old) ||
  hasReported(next) !== hasReported(old) ||
  isOutOfService(next) !== isOutOfService(old) ||
  next.status?.volumesInUse?.join() !== old.status?.volumesInUse?.join()
