// The schema of PersistentVolume. The rules are in volume.ts and the volume-*-rules.ts files. The volume sources that pods
// also have are in volume-sources-schema.ts.
import {
  boolean,
  type Infer,
  int32,
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
  within,
} from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { nodeSelector, objectReference, secretReference } from '../shared/references-schema.ts'
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  fcVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  hostPathVolumeSource,
  nfsVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from './volume-sources-schema.ts'

const glusterfsPersistentVolumeSource = object(
  'io.k8s.api.core.v1.GlusterfsPersistentVolumeSource',
  'A GlusterFS volume; deprecated and no longer supported.',
  {
    endpoints: req(1, string, 'Name of the endpoints object that lists the Gluster servers.'),
    path: req(2, string, 'Name of the Gluster volume.'),
    readOnly: opt(3, boolean, 'Whether the volume is read-only.'),
    endpointsNamespace: ptr(4, string, "Namespace of the endpoints object; unset means the claim's namespace."),
  },
)

const rbdPersistentVolumeSource = object(
  'io.k8s.api.core.v1.RBDPersistentVolumeSource',
  'A Ceph block device image; deprecated and no longer supported.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    image: req(2, string, 'Name of the image in its pool.'),
    fsType: opt(3, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    pool: opt(4, string, 'Pool that holds the image.', { default: 'rbd' }),
    user: opt(5, string, 'Ceph user to connect as.', { default: 'admin' }),
    keyring: opt(6, string, 'Path of the keyring file on the node.', { default: '/etc/ceph/keyring' }),
    secretRef: ptr(7, secretReference, "Secret with the user's key; replaces the keyring."),
    readOnly: opt(8, boolean, 'Whether the volume is read-only.'),
  },
)

const iscsiPersistentVolumeSource = object(
  'io.k8s.api.core.v1.ISCSIPersistentVolumeSource',
  'A disk on an iSCSI target.',
  {
    targetPortal: req(1, string, 'Address of the target, with the port unless it is the default.'),
    iqn: req(2, string, 'Qualified name of the target, beginning with iqn, eui or naa.'),
    lun: req(3, int32, 'Logical unit number at the target, 0 to 255.'),
    iscsiInterface: opt(4, string, 'Initiator interface to connect through.', { default: 'default' }),
    fsType: opt(5, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    readOnly: opt(6, boolean, 'Whether the volume is read-only.'),
    portals: opt(7, list(string), 'Further addresses of the target for multipath.'),
    chapAuthDiscovery: opt(8, boolean, 'Whether discovery of the target authenticates with CHAP.'),
    chapAuthSession: opt(11, boolean, 'Whether sessions with the target authenticate with CHAP.'),
    secretRef: ptr(10, secretReference, 'Secret with the CHAP credentials for target and initiator.'),
    initiatorName: ptr(12, string, 'Initiator name; overrides that of the node.'),
  },
)

const cinderPersistentVolumeSource = object(
  'io.k8s.api.core.v1.CinderPersistentVolumeSource',
  'An OpenStack Cinder volume.',
  {
    volumeID: req(1, string, 'ID of the Cinder volume.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    readOnly: opt(3, boolean, 'Whether the volume is read-only.'),
    secretRef: ptr(4, secretReference, 'Secret with the parameters to connect to OpenStack.'),
  },
)

const cephFSPersistentVolumeSource = object(
  'io.k8s.api.core.v1.CephFSPersistentVolumeSource',
  'A directory of a Ceph file system; deprecated and no longer supported.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    path: opt(2, string, 'Directory to mount; the root if empty.'),
    user: opt(3, string, 'Ceph user to connect as.'),
    secretFile: opt(4, string, 'Path of the key file on the node.'),
    secretRef: ptr(5, secretReference, "Secret with the user's key; replaces the key file."),
    readOnly: opt(6, boolean, 'Whether the volume is read-only.'),
  },
)

const flexPersistentVolumeSource = object(
  'io.k8s.api.core.v1.FlexPersistentVolumeSource',
  'A volume handled by an executable plugin on the node.',
  {
    driver: req(1, string, 'Name of the plugin that handles the volume.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    secretRef: ptr(3, secretReference, 'Secret that is passed to the plugin.'),
    readOnly: opt(4, boolean, 'Whether the volume is read-only.'),
    options: opt(5, map(string), 'Options that are passed to the plugin.'),
  },
)

const azureFilePersistentVolumeSource = object(
  'io.k8s.api.core.v1.AzureFilePersistentVolumeSource',
  'A share of the Azure file service.',
  {
    secretName: req(1, string, 'Secret with the name and key of the Azure storage account.'),
    shareName: req(2, string, 'Name of the share.'),
    readOnly: opt(3, boolean, 'Whether the volume is read-only.'),
    secretNamespace: ptr(4, string, "Namespace of the secret; unset means the claim's namespace."),
  },
)

const scaleIOPersistentVolumeSource = object(
  'io.k8s.api.core.v1.ScaleIOPersistentVolumeSource',
  'A volume of a ScaleIO installation; deprecated and no longer supported.',
  {
    gateway: req(1, string, 'Address of the ScaleIO gateway.'),
    system: req(2, string, 'Name of the storage system at ScaleIO.'),
    secretRef: ptr(3, secretReference, 'Secret with the credentials for the gateway.'),
    sslEnabled: opt(4, boolean, 'Whether to connect to the gateway over TLS.'),
    protectionDomain: opt(5, string, 'Protection domain that holds the volume.'),
    storagePool: opt(6, string, 'Storage pool of the protection domain.'),
    storageMode: opt(7, string, 'Whether the volume is thick or thin provisioned.', { default: 'ThinProvisioned' }),
    volumeName: opt(8, string, 'Name of the volume at ScaleIO.'),
    fsType: opt(9, string, 'File system on the volume.', { default: 'xfs' }),
    readOnly: opt(10, boolean, 'Whether the volume is read-only.'),
  },
)

const localVolumeSource = object(
  'io.k8s.api.core.v1.LocalVolumeSource',
  'A disk or directory of one node; the volume needs a node affinity.',
  {
    path: req(1, string, 'Path on the node: a directory or a block device.'),
    fsType: ptr(2, string, 'File system to mount or create if the path is a block device.'),
  },
)

const storageOSPersistentVolumeSource = object(
  'io.k8s.api.core.v1.StorageOSPersistentVolumeSource',
  'A volume of a StorageOS installation; deprecated and no longer supported.',
  {
    volumeName: opt(1, string, 'Name of the volume at StorageOS.'),
    volumeNamespace: opt(2, string, 'Namespace of the volume at StorageOS.'),
    fsType: opt(3, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    readOnly: opt(4, boolean, 'Whether the volume is read-only.'),
    secretRef: ptr(5, objectReference, 'Secret with the credentials for StorageOS.'),
  },
)

const csiPersistentVolumeSource = object('io.k8s.api.core.v1.CSIPersistentVolumeSource', 'A volume of a CSI driver.', {
  driver: req(1, string, 'Name of the CSI driver.'),
  volumeHandle: req(2, string, 'ID of the volume in calls to the driver.'),
  readOnly: opt(3, boolean, 'Whether the volume is attached read-only.'),
  fsType: opt(4, string, 'File system to create on the volume if it has none.'),
  volumeAttributes: opt(5, map(string), 'Volume context from CreateVolume, passed in later calls.'),
  controllerPublishSecretRef: ptr(
    6,
    secretReference,
    'Secret for ControllerPublishVolume and ControllerUnpublishVolume.',
  ),
  nodeStageSecretRef: ptr(7, secretReference, 'Secret for NodeStageVolume.'),
  nodePublishSecretRef: ptr(8, secretReference, 'Secret for NodePublishVolume.'),
  controllerExpandSecretRef: ptr(
    9,
    secretReference,
    'Secret for ControllerExpandVolume; can be set after creation if it is unset.',
  ),
  nodeExpandSecretRef: ptr(10, secretReference, 'Secret for NodeExpandVolume.'),
})

export const persistentVolumeSource = object(
  'io.k8s.api.core.v1.PersistentVolumeSource',
  'Source of a volume; exactly one must be set.',
  {
    gcePersistentDisk: ptr(1, gcePersistentDiskVolumeSource, 'A Google Compute Engine persistent disk.'),
    awsElasticBlockStore: ptr(2, awsElasticBlockStoreVolumeSource, 'An AWS Elastic Block Store volume.'),
    hostPath: ptr(3, hostPathVolumeSource, 'A directory of the node, for tests on a single node.'),
    glusterfs: ptr(4, glusterfsPersistentVolumeSource, 'A GlusterFS volume; deprecated and no longer supported.'),
    nfs: ptr(5, nfsVolumeSource, 'A directory exported by an NFS server.'),
    rbd: ptr(6, rbdPersistentVolumeSource, 'A Ceph block device image; deprecated and no longer supported.'),
    iscsi: ptr(7, iscsiPersistentVolumeSource, 'A disk on an iSCSI target.'),
    cinder: ptr(8, cinderPersistentVolumeSource, 'An OpenStack Cinder volume.'),
    cephfs: ptr(
      9,
      cephFSPersistentVolumeSource,
      'A directory of a Ceph file system; deprecated and no longer supported.',
    ),
    fc: ptr(10, fcVolumeSource, 'A Fibre Channel disk that is attached to the node.'),
    flocker: ptr(11, flockerVolumeSource, 'A dataset of a Flocker installation; deprecated and no longer supported.'),
    flexVolume: ptr(12, flexPersistentVolumeSource, 'A volume handled by an executable plugin on the node.'),
    azureFile: ptr(13, azureFilePersistentVolumeSource, 'A share of the Azure file service.'),
    vsphereVolume: ptr(14, vsphereVirtualDiskVolumeSource, 'A virtual disk of a vSphere cluster.'),
    quobyte: ptr(15, quobyteVolumeSource, 'A volume of a Quobyte installation; deprecated and no longer supported.'),
    azureDisk: ptr(16, azureDiskVolumeSource, 'An Azure data disk, managed or a blob.'),
    photonPersistentDisk: ptr(
      17,
      photonPersistentDiskVolumeSource,
      'A Photon Controller persistent disk; deprecated and no longer supported.',
    ),
    portworxVolume: ptr(18, portworxVolumeSource, 'A volume of a Portworx installation.'),
    scaleIO: ptr(
      19,
      scaleIOPersistentVolumeSource,
      'A volume of a ScaleIO installation; deprecated and no longer supported.',
    ),
    local: ptr(20, localVolumeSource, 'A disk or directory of one node; needs a node affinity.'),
    storageos: ptr(
      21,
      storageOSPersistentVolumeSource,
      'A volume of a StorageOS installation; deprecated and no longer supported.',
    ),
    csi: ptr(22, csiPersistentVolumeSource, 'A volume of a CSI driver.'),
  },
)

export const volumeNodeAffinity = object('io.k8s.api.core.v1.VolumeNodeAffinity', 'Nodes that can access a volume.', {
  required: ptr(1, nodeSelector, 'Nodes to which pods that use the volume can be scheduled.'),
})

export const persistentVolumeSpec = object(
  'io.k8s.api.core.v1.PersistentVolumeSpec',
  'Properties of the volume and its claim.',
  {
    capacity: opt(1, map(quantity), 'Capacity by resource: storage, and iops and throughput (bytes/s) if known.'),
    ...within(2, persistentVolumeSource.fields),
    accessModes: opt(
      3,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Supported access modes; ReadWriteOncePod excludes all others.',
    ),
    claimRef: ptr(4, objectReference, 'Claim that the volume is bound to, or reserved for if the UID is unset.', {
      atomic: false,
    }),
    persistentVolumeReclaimPolicy: opt(
      5,
      oneOf('Recycle', 'Delete', 'Retain'),
      'Whether the volume is kept (Retain) or deleted (Delete) after its claim is deleted.',
      { default: 'Retain' },
    ),
    storageClassName: opt(6, string, 'StorageClass of the volume; empty for none.'),
    mountOptions: opt(7, list(string), 'Mount options, such as ro or soft; not validated.'),
    volumeMode: ptr(
      8,
      oneOf('Block', 'Filesystem'),
      'Filesystem mounts the volume as a directory; Block provides the raw device.',
      { default: 'Filesystem' },
    ),
    nodeAffinity: ptr(9, volumeNodeAffinity, 'Nodes that can access the volume; immutable once set.'),
    volumeAttributesClassName: ptr(10, string, 'VolumeAttributesClass of the volume; only for CSI volumes.'),
  },
)

export type PersistentVolumeSpec = Infer<typeof persistentVolumeSpec>

const persistentVolumeStatus = object(
  'io.k8s.api.core.v1.PersistentVolumeStatus',
  'Current state of the volume; written by controllers.',
  {
    phase: opt(
      1,
      oneOf('Pending', 'Available', 'Bound', 'Released', 'Failed'),
      'Pending, Available (unbound), Bound, Released (its claim was deleted) or Failed (reclaiming failed).',
      { default: 'Pending' },
    ),
    message: opt(2, string, 'Human-readable details of the current phase.'),
    reason: opt(3, string, 'Machine-readable reason for the current phase, in CamelCase.'),
    lastPhaseTransitionTime: ptr(4, time, 'When the volume entered its current phase.'),
  },
)

export const persistentVolume = object(
  'io.k8s.api.core.v1.PersistentVolume',
  'A volume in the cluster, created by a provisioner or an administrator.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; the volume has no namespace.'),
    spec: opt(2, persistentVolumeSpec, 'Properties of the volume and its claim.'),
    status: opt(3, persistentVolumeStatus, 'Current state of the volume; written by controllers.'),
  },
)

export type PersistentVolume = Infer<typeof persistentVolume>
