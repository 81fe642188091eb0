// The volume of an attachment: a PersistentVolume, or the attachment's inline volume spec.
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
  /** For messages. */
  readonly name: string
  readonly spec: Readonly<PersistentVolumeSpec>
  /** Undefined for an inline volume. */
  readonly object: Volume | undefined
}

/** Undefined if the PersistentVolume does not exist, or was recreated with another volumeHandle. */
export function volumeOf(attachment: Attachment, { volumes }: AttacherContext): AttachmentVolume | undefined {
  const { metadata, spec } = attachment
  const { inlineVolumeSpec, persistentVolumeName = '' } = spec.source
  if (inlineVolumeSpec) return { name: `of attachment ${metadata.name}`, spec: inlineVolumeSpec, object: undefined }
  const object = volumes.get(persistentVolumeName)
  return object?.spec && belongsTo(attachment, object)
    ? { name: persistentVolumeName, spec: object.spec, object }
    : undefined
}

/**
 * The attachment that holds a single-node volume on another node. The finalizer means that the volume may be published
 * there. Includes other PersistentVolumes with the same volumeHandle.
 */
export function otherHolder(
  attachment: Attachment,
  { spec }: AttachmentVolume,
  context: AttacherContext,
): Attachment | undefined {
  if (!isSingleNode(spec)) return undefined
  return attachmentsOfHandle(spec, context).find((other) => {
    const isSameNode = other.spec.nodeName === attachment.spec.nodeName
    const mayBePublished = other.metadata.finalizers?.includes(context.finalizer) || isAttached(other)
    return !isSameNode && other.spec.attacher === attachment.spec.attacher && mayBePublished
  })
}
