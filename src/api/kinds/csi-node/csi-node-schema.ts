// The schema of CSINode. The rules are in csi-node.ts and storage-health-rules.ts.
import { type Infer, int32, list, object, oneOf, opt, ptr, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const volumeNodeResources = object('io.k8s.api.storage.v1.VolumeNodeResources', 'Volume limit of a node.', {
  count: ptr(1, int32, 'Maximum number of volumes of the driver on the node; unset means no limit.'),
})

export const csiNodeDriver = object('io.k8s.api.storage.v1.CSINodeDriver', 'A driver that runs on a node.', {
  name: req(1, string, 'Name of the driver.'),
  nodeID: req(2, string, 'ID of the node in calls to the driver; immutable.'),
  topologyKeys: req(3, list(string), 'Keys of the node labels that hold its topology segments.'),
  allocatable: ptr(4, volumeNodeResources, 'Volume limit of the node for this driver.'),
})

export type CSINodeDriver = Infer<typeof csiNodeDriver>

const csiNodeSpec = object('io.k8s.api.storage.v1.CSINodeSpec', 'The drivers registered on a node.', {
  drivers: req(1, list(csiNodeDriver), 'Drivers registered on the node, unique by name.', {
    merge: 'name',
    list: 'map',
    keys: ['name'],
  }),
})

const storageHealthCondition = object(
  'io.k8s.api.storage.v1.StorageHealthCondition',
  'A problem with the storage behind a driver.',
  {
    status: req(1, oneOf('StorageUnreachable', 'StorageDegraded'), 'Severity: StorageUnreachable or StorageDegraded.'),
    reason: req(2, string, 'Machine-readable reason for the problem, in CamelCase.'),
    message: opt(3, string, 'Human-readable details.'),
    accessMode: ptr(
      4,
      oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'),
      'Restricts the condition to volumes with this access mode.',
    ),
    volumeMode: ptr(5, oneOf('Block', 'Filesystem'), 'Restricts the condition to volumes with this mode.'),
    lastTransitionTime: opt(6, time, 'When the condition last changed.'),
  },
)

const storageHealth = object(
  'io.k8s.api.storage.v1.StorageHealth',
  'Health of the storage behind a driver, as reported by a node.',
  {
    name: req(1, string, 'Name of the driver.'),
    healthConditions: opt(2, list(storageHealthCondition), 'Problems with the storage; empty if it is healthy.'),
  },
)

const csiNodeStatus = object('io.k8s.api.storage.v1.CSINodeStatus', 'Status that a node reports about its drivers.', {
  storageHealth: opt(1, list(storageHealth), 'Health of the storage behind each driver on the node.', {
    merge: 'name',
    list: 'map',
    keys: ['name'],
  }),
})

export const csiNode = object('io.k8s.api.storage.v1.CSINode', 'The CSI drivers registered on one node.', {
  metadata: req(1, objectMeta, 'Standard object metadata; the name is that of the node.'),
  spec: req(2, csiNodeSpec, 'The drivers registered on the node.'),
  status: opt(3, csiNodeStatus, 'Status that the node reports about its drivers.'),
})

export type CSINode = Infer<typeof csiNode>
