// The fields of VolumeAttachment. Its rules are in volume-attachment.ts.
import { boolean, type Infer, int32, map, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { persistentVolumeSpec } from '../volume/volume-schema.ts'

export const volumeAttachmentSource = object(
  'io.k8s.api.storage.v1.VolumeAttachmentSource',
  'The volume to attach: exactly one of these.',
  {
    persistentVolumeName: ptr(1, string, 'Name of the volume to attach.'),
    inlineVolumeSpec: ptr(2, persistentVolumeSpec, 'A CSI volume described here instead of in an object of its own.'),
  },
)

export const volumeAttachmentSpec = object(
  'io.k8s.api.storage.v1.VolumeAttachmentSpec',
  'Which volume to attach to which node; cannot change.',
  {
    attacher: req(1, string, 'The CSI driver that attaches the volume.'),
    source: req(2, volumeAttachmentSource, 'The volume to attach.'),
    nodeName: req(3, string, 'The node to attach it to.'),
  },
)

export const volumeError = object('io.k8s.api.storage.v1.VolumeError', 'Why the last attempt failed.', {
  time: opt(1, time, 'When the attempt failed.'),
  message: opt(2, string, 'What the driver said; secrets must not appear here.'),
  errorCode: ptr(3, int32, 'The gRPC code of the failure, where it is known.'),
})

export const volumeAttachmentStatus = object(
  'io.k8s.api.storage.v1.VolumeAttachmentStatus',
  'How far attaching or detaching has come; written by the attacher.',
  {
    attached: req(1, boolean, 'Whether the volume is attached.'),
    attachmentMetadata: opt(
      2,
      map(string),
      'What the driver wants to be told when the volume is made ready on the node.',
    ),
    attachError: ptr(3, volumeError, 'Why the last attempt to attach failed; unset after success.'),
    detachError: ptr(4, volumeError, 'Why the last attempt to detach failed; unset after success.'),
  },
)

export type VolumeAttachmentStatus = Infer<typeof volumeAttachmentStatus>

export const volumeAttachment = object(
  'io.k8s.api.storage.v1.VolumeAttachment',
  'The wish that a volume be attached to a node, and how far that has come.',
  {
    metadata: req(1, objectMeta, 'Name of the attachment; deleting it asks for the volume to be detached.'),
    spec: req(2, volumeAttachmentSpec, 'Which volume to attach to which node; cannot change.'),
    status: opt(3, volumeAttachmentStatus, 'How far attaching or detaching has come; written by the attacher.'),
  },
)

export type VolumeAttachment = Infer<typeof volumeAttachment>
