// The group storage.k8s.io: classes, drivers, their nodes, free capacity, and attachments.
import {
  boolean,
  type Infer,
  int32,
  int64,
  list,
  map,
  object,
  oneOf,
  opt,
  ptr,
  quantity,
  req,
  string,
  time,
} from '../../schema.ts'
import { persistentVolumeSpec } from '../volume/volume-schema.ts'
import { labelSelector, objectMeta } from './meta-schema.ts'
import { topologySelectorTerm } from './references-schema.ts'

export const storageClass = object(
  'io.k8s.api.storage.v1.StorageClass',
  'A kind of storage users can ask for by name, and who makes its volumes.',
  {
    metadata: req(1, objectMeta, 'Name of the class, and whether it is the default one (an annotation).'),
    provisioner: req(2, string, 'Who makes the volumes of this class, such as a CSI driver; cannot change.'),
    parameters: opt(3, map(string), 'What the provisioner is told about volumes of this class; cannot change.'),
    reclaimPolicy: ptr(
      4,
      oneOf('Recycle', 'Delete', 'Retain'),
      'What happens to a volume when its claim is gone: Delete or Retain; cannot change.',
      { default: 'Delete' },
    ),
    mountOptions: opt(5, list(string), 'Options for mounting the volumes of this class; not checked here.'),
    allowVolumeExpansion: ptr(6, boolean, 'Whether claims of this class may ask for more storage later.'),
    volumeBindingMode: ptr(
      7,
      oneOf('Immediate', 'WaitForFirstConsumer'),
      'Whether volumes are made at once or only when a pod needs them; cannot change.',
      { default: 'Immediate' },
    ),
    allowedTopologies: opt(
      8,
      list(topologySelectorTerm),
      'Parts of the cluster where volumes may be made; empty allows all.',
    ),
  },
)

export type StorageClass = Infer<typeof storageClass>

export const volumeAttributesClass = object(
  'io.k8s.api.storage.v1.VolumeAttributesClass',
  'Attributes of volumes, such as speed, that can change while a volume is in use.',
  {
    metadata: req(1, objectMeta, 'Name of the class; it belongs to no namespace.'),
    driverName: req(2, string, 'The CSI driver that understands the parameters; cannot change.'),
    parameters: opt(3, map(string), 'Attributes as the driver understands them, at least one; cannot change.'),
  },
)

export type VolumeAttributesClass = Infer<typeof volumeAttributesClass>

export const tokenRequest = object(
  'io.k8s.api.storage.v1.TokenRequest',
  'A service account token that a driver wants for the pods it serves.',
  {
    audience: req(1, string, "Whom the token is meant for; empty for the API server's own audience."),
    expirationSeconds: ptr(2, int64, 'How long the token is valid, 600 seconds or more.'),
  },
)

export const csiDriverSpec = object(
  'io.k8s.api.storage.v1.CSIDriverSpec',
  'What a driver needs from the system around it.',
  {
    attachRequired: ptr(
      1,
      boolean,
      'Whether volumes must be attached to a node before they are mounted; cannot change.',
      { default: true },
    ),
    podInfoOnMount: ptr(2, boolean, 'Whether the driver is told which pod a volume is mounted for.', {
      default: false,
    }),
    volumeLifecycleModes: opt(
      3,
      list(string),
      'Kinds of volumes the driver serves: Persistent, Ephemeral or both; cannot change.',
      { default: ['Persistent'], list: 'set' },
    ),
    storageCapacity: ptr(4, boolean, 'Whether pods wait for a node with enough free storage reported by the driver.', {
      default: false,
    }),
    fsGroupPolicy: ptr(
      5,
      string,
      "When volume ownership is changed to a pod's group: ReadWriteOnceWithFSType, File or None.",
      { default: 'ReadWriteOnceWithFSType' },
    ),
    tokenRequests: opt(6, list(tokenRequest), 'Tokens of the pod that the driver is given when it mounts a volume.'),
    requiresRepublish: ptr(
      7,
      boolean,
      'Whether mounted volumes are published again from time to time, to refresh tokens.',
      { default: false },
    ),
    seLinuxMount: ptr(8, boolean, 'Whether volumes can be mounted with an SELinux label.', { default: false }),
    nodeAllocatableUpdatePeriodSeconds: ptr(
      9,
      int64,
      "Seconds between updates of a node's volume limit, 10 or more; unset never updates it.",
    ),
    serviceAccountTokenInSecrets: ptr(
      10,
      boolean,
      'Whether tokens are handed over as secrets instead of volume attributes.',
    ),
    preventPodSchedulingIfMissing: ptr(
      11,
      boolean,
      'Whether pods that use the driver stay away from nodes where it does not run.',
      { default: false },
    ),
  },
)

export type CSIDriverSpec = Infer<typeof csiDriverSpec>

export const csiDriver = object('io.k8s.api.storage.v1.CSIDriver', 'A CSI driver that is installed in the cluster.', {
  metadata: req(1, objectMeta, 'The name is the one the driver reports about itself.'),
  spec: req(2, csiDriverSpec, 'What the driver needs from the system around it.'),
})

export type CSIDriver = Infer<typeof csiDriver>

export const volumeNodeResources = object(
  'io.k8s.api.storage.v1.VolumeNodeResources',
  'How many volumes a node can take.',
  {
    count: ptr(1, int32, 'How many volumes of the driver can be on the node at once; unset for no limit.'),
  },
)

export const csiNodeDriver = object('io.k8s.api.storage.v1.CSINodeDriver', 'A driver that runs on a node.', {
  name: req(1, string, 'Name of the driver.'),
  nodeID: req(2, string, 'Name by which the driver knows the node; cannot change.'),
  topologyKeys: req(3, list(string), 'Labels of the node that describe where it is, as the driver sees it.'),
  allocatable: ptr(4, volumeNodeResources, 'How many volumes of the driver the node can take.'),
})

export type CSINodeDriver = Infer<typeof csiNodeDriver>

export const csiNodeSpec = object('io.k8s.api.storage.v1.CSINodeSpec', 'Which drivers run on a node.', {
  drivers: req(1, list(csiNodeDriver), 'Drivers that are registered on the node, each name once.', {
    merge: 'name',
    list: 'map',
    keys: ['name'],
  }),
})

export type CSINodeSpec = Infer<typeof csiNodeSpec>

export const storageHealthCondition = object(
  'io.k8s.api.storage.v1.StorageHealthCondition',
  'One thing that is wrong with the storage behind a driver.',
  {
    status: req(
      1,
      oneOf('StorageUnreachable', 'StorageDegraded'),
      'How bad it is: StorageUnreachable or StorageDegraded.',
    ),
    reason: req(2, string, 'One word for programs that says what is wrong.'),
    message: opt(3, string, 'A sentence for people with the details.'),
    accessMode: ptr(
      4,
      oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'),
      'Restricts the condition to volumes with this access mode.',
    ),
    volumeMode: ptr(5, oneOf('Block', 'Filesystem'), 'Restricts the condition to volumes with this mode.'),
    lastTransitionTime: opt(6, time, 'When the condition last changed.'),
  },
)

export const storageHealth = object(
  'io.k8s.api.storage.v1.StorageHealth',
  'How healthy the storage behind a driver is, seen from a node.',
  {
    name: req(1, string, 'Name of the driver.'),
    healthConditions: opt(
      2,
      list(storageHealthCondition),
      'Everything that is wrong with the storage; empty when it is healthy.',
    ),
  },
)

export const csiNodeStatus = object(
  'io.k8s.api.storage.v1.CSINodeStatus',
  'What a node reports about the storage of its drivers.',
  {
    storageHealth: opt(1, list(storageHealth), 'Health of the storage behind each driver on the node.', {
      merge: 'name',
      list: 'map',
      keys: ['name'],
    }),
  },
)

export const csiNode = object('io.k8s.api.storage.v1.CSINode', 'The CSI drivers of one node, and how they see it.', {
  metadata: req(1, objectMeta, 'The name is the name of the node.'),
  spec: req(2, csiNodeSpec, 'Which drivers run on the node.'),
  status: opt(3, csiNodeStatus, 'What the node reports about the storage of its drivers.'),
})

export type CSINode = Infer<typeof csiNode>

export const csiStorageCapacity = object(
  'io.k8s.api.storage.v1.CSIStorageCapacity',
  'How much storage of one class is free in one part of the cluster.',
  {
    metadata: req(1, objectMeta, 'Name and namespace; the name carries no meaning.'),
    nodeTopology: ptr(
      2,
      labelSelector,
      'Nodes that can reach this storage; unset for none, empty for all; cannot change.',
    ),
    storageClassName: req(3, string, 'Class that the free storage was asked about with; cannot change.'),
    capacity: ptr(4, quantity, 'How much is free; unset when that is not known.'),
    maximumVolumeSize: ptr(5, quantity, 'Largest volume that can be made; unset when the driver does not say.'),
  },
)

export type CSIStorageCapacity = Infer<typeof csiStorageCapacity>

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
