// Finds what the attacher needs to know about an attachment: its volume (a PersistentVolume or an inline spec), the
// driver's ID for its node, and attachments that conflict with it.
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import {
  type Attachment,
  attachmentsOfHandle,
  belongsTo,
  isAttached,
  isSingleNode,
  type Volume,
} from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'

export interface AttachmentVolume {
  /** Used in messages. */
  readonly name: string
  readonly spec: Readonly<PersistentVolumeSpec>
  /** Undefined for an inline volume. */
  readonly object: Volume | undefined
}

/** Returns undefined if the PersistentVolume does not exist or was recreated with another volumeHandle. */
export function volumeOf(attachment: Attachment, { volumes }: AttacherContext): AttachmentVolume | undefined {
  const { metadata, spec } = attachment
  const { inlineVolumeSpec, persistentVolumeName = '' } = spec.source
  if (inlineVolumeSpec) return { name: `of attachment ${metadata.name}`, spec: inlineVolumeSpec, object: undefined }
  const object = volumes.get(persistentVolumeName)
  return object?.spec && belongsTo(attachment, object)
    ? { name: persistentVolumeName, spec: object.spec, object }
    : undefined
}

/** Returns undefined if the driver is not registered on the node. */
export const nodeIdOf = (nodeName: string, { csiNodes, facts }: AttacherContext): string | undefined =>
  csiNodes.get(nodeName)?.spec.drivers.find(({ name }) => name === facts.name)?.nodeID

/**
 * Returns an attachment of a single-node volume to another node, on which the volume is or may be published. The finalizer
 * means that it may be. Includes attachments of other PersistentVolumes with the same volumeHandle.
 */
export function findConflictingAttachment(
  attachment: Attachment,
  { spec }: AttachmentVolume,
  context: AttacherContext,
): Attachment | undefined {
  if (!isSingleNode(spec)) return undefined
  return attachmentsOfHandle(spec, context).find((candidate) => {
    const isSameNode = candidate.spec.nodeName === attachment.spec.nodeName
    const mayBePublished = candidate.metadata.finalizers?.includes(context.finalizer) || isAttached(candidate)
    return !isSameNode && candidate.spec.attacher === attachment.spec.attacher && mayBePublished
  })
}
