// The volume behind an attachment: an object of its own, or described in the attachment itself.
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import {
  type Attachment,
  attachmentsOfHandle,
  isAttached,
  isMadeFor,
  isSingleNode,
  type Volume,
} from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'

export interface AttachmentVolume {
  /** For people. */
  readonly name: string
  readonly spec: Readonly<PersistentVolumeSpec>
  /** The object, if it has one. */
  readonly object: Volume | undefined
}

/** Undefined when the volume's object is not there, or is another of its name. */
export function volumeOf(attachment: Attachment, { volumes }: AttacherContext): AttachmentVolume | undefined {
  const { metadata, spec } = attachment
  const { inlineVolumeSpec, persistentVolumeName = '' } = spec.source
  if (inlineVolumeSpec) return { name: `of attachment ${metadata.name}`, spec: inlineVolumeSpec, object: undefined }
  const object = volumes.get(persistentVolumeName)
  return object?.spec && isMadeFor(attachment, object)
    ? { name: persistentVolumeName, spec: object.spec, object }
    : undefined
}

/**
 * Where else a volume that may be on one node only is published, or may be: for all we know it is wherever the finalizer
 * says so, also for objects that describe the same storage a second time.
 */
export function otherHolder(
  attachment: Attachment,
  { spec }: AttachmentVolume,
  context: AttacherContext,
): Attachment | undefined {
  if (!isSingleNode(spec)) return undefined
  return attachmentsOfHandle(spec, context).find((other) => {
    const isSamePlace = other.spec.nodeName === attachment.spec.nodeName
    const mayBePublished = other.metadata.finalizers?.includes(context.finalizer) || isAttached(other)
    return !isSamePlace && other.spec.attacher === attachment.spec.attacher && mayBePublished
  })
}
