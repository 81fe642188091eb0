// The fields of CSINode. Its rules are in csi-node.ts and storage-health-rules.ts.
import { type Infer, int32, list, object, oneOf, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

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
