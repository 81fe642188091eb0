// The schema of VolumeAttachment. The rules are in volume-attachment.ts.
import { boolean, type Infer, int32, map, object, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { persistentVolumeSpec } from '../volume/volume-schema.ts'

const volumeAttachmentSource = object(
  'io.k8s.api.storage.v1.VolumeAttachmentSource',
  'The volume to attach; exactly one must be set.',
  {
    persistentVolumeName: ptr(1, string, 'Name of the volume to attach.'),
    inlineVolumeSpec: ptr(2, persistentVolumeSpec, 'Spec of a CSI volume without a PersistentVolume.'),
  },
)

export const volumeAttachmentSpec = object(
  'io.k8s.api.storage.v1.VolumeAttachmentSpec',
  'Volume and node of the attachment; immutable.',
  {
    attacher: req(1, string, 'The CSI driver that attaches the volume.'),
    source: req(2, volumeAttachmentSource, 'The volume to attach.'),
    nodeName: req(3, string, 'Node to attach the volume to.'),
  },
)

const volumeError = object('io.k8s.api.storage.v1.VolumeError', 'Error of the last attempt.', {
  time: opt(1, time, 'When the attempt failed.'),
  message: opt(2, string, 'Error message of the driver; must not contain secrets.'),
  errorCode: ptr(3, int32, 'gRPC code of the error, if known.'),
})

const volumeAttachmentStatus = object(
  'io.k8s.api.storage.v1.VolumeAttachmentStatus',
  'Result of attaching and detaching; written by the attacher.',
  {
    attached: req(1, boolean, 'Whether the volume is attached.'),
    attachmentMetadata: opt(
      2,
      map(string),
      'Publish context that the driver receives in NodeStageVolume and NodePublishVolume.',
    ),
    attachError: ptr(3, volumeError, 'Error of the last attempt to attach; unset after success.'),
    detachError: ptr(4, volumeError, 'Error of the last attempt to detach; unset after success.'),
  },
)

export type VolumeAttachmentStatus = Infer<typeof volumeAttachmentStatus>

export const volumeAttachment = object(
  'io.k8s.api.storage.v1.VolumeAttachment',
  'The intent to attach a volume to a node, and its state.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; deleting the object detaches the volume.'),
    spec: req(2, volumeAttachmentSpec, 'Volume and node of the attachment; immutable.'),
    status: opt(3, volumeAttachmentStatus, 'Result of attaching and detaching; written by the attacher.'),
  },
)

export type VolumeAttachment = Infer<typeof volumeAttachment>
