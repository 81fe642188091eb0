// PersistentVolume: a piece of storage, where its data is, and the claim it belongs to.
// Sources that pods may use as well are in volume-sources.ts.
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

export const glusterfsPersistentVolumeSource = object(
  'io.k8s.api.core.v1.GlusterfsPersistentVolumeSource',
  'A GlusterFS volume; its plugin is gone.',
  {
    endpoints: req(1, string, 'Name of the endpoints object that lists the Gluster servers.'),
    path: req(2, string, 'Name of the Gluster volume.'),
    readOnly: opt(3, boolean, 'Whether the volume may only be read.'),
    endpointsNamespace: ptr(4, string, "Namespace of the endpoints object; unset means the claim's namespace."),
  },
)

export const rbdPersistentVolumeSource = object(
  'io.k8s.api.core.v1.RBDPersistentVolumeSource',
  'A Ceph block device image; its plugin is gone.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    image: req(2, string, 'Name of the image in its pool.'),
    fsType: opt(3, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.'),
    pool: opt(4, string, 'Pool that holds the image.', { default: 'rbd' }),
    user: opt(5, string, 'Ceph user to connect as.', { default: 'admin' }),
    keyring: opt(6, string, 'Path of the keyring file on the node.', { default: '/etc/ceph/keyring' }),
    secretRef: ptr(7, secretReference, "Secret with the user's key; replaces the keyring."),
    readOnly: opt(8, boolean, 'Whether the volume may only be read.'),
  },
)

export const iscsiPersistentVolumeSource = object(
  'io.k8s.api.core.v1.ISCSIPersistentVolumeSource',
  'A disk on an iSCSI target.',
  {
    targetPortal: req(1, string, 'Address of the target, with the port unless it is the usual one.'),
    iqn: req(2, string, 'Qualified name of the target, beginning with iqn, eui or naa.'),
    lun: req(3, int32, 'Logical unit number at the target, 0 to 255.'),
    iscsiInterface: opt(4, string, 'Initiator interface to connect through.', { default: 'default' }),
    fsType: opt(5, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.'),
    readOnly: opt(6, boolean, 'Whether the volume may only be read.'),
    portals: opt(7, list(string), 'Further addresses of the same target, for several paths.'),
    chapAuthDiscovery: opt(8, boolean, 'Whether discovery of the target authenticates with CHAP.'),
    chapAuthSession: opt(11, boolean, 'Whether sessions with the target authenticate with CHAP.'),
    secretRef: ptr(10, secretReference, 'Secret with the CHAP credentials for target and initiator.'),
    initiatorName: ptr(12, string, 'Initiator name to use instead of the one configured on the node.'),
  },
)

export const cinderPersistentVolumeSource = object(
  'io.k8s.api.core.v1.CinderPersistentVolumeSource',
  'An OpenStack Cinder volume.',
  {
    volumeID: req(1, string, 'Identifier of the volume at Cinder.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.'),
    readOnly: opt(3, boolean, 'Whether the volume may only be read.'),
    secretRef: ptr(4, secretReference, 'Secret with the parameters to reach OpenStack.'),
  },
)

export const cephFSPersistentVolumeSource = object(
  'io.k8s.api.core.v1.CephFSPersistentVolumeSource',
  'A directory of a Ceph file system; its plugin is gone.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    path: opt(2, string, 'Directory to mount; the root when it is empty.'),
    user: opt(3, string, 'Ceph user to connect as.'),
    secretFile: opt(4, string, 'Path of the key file on the node.'),
    secretRef: ptr(5, secretReference, "Secret with the user's key; replaces the key file."),
    readOnly: opt(6, boolean, 'Whether the volume may only be read.'),
  },
)

export const flexPersistentVolumeSource = object(
  'io.k8s.api.core.v1.FlexPersistentVolumeSource',
  'A volume handled by an executable plugin on the node.',
  {
    driver: req(1, string, 'Name of the plugin that handles the volume.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.'),
    secretRef: ptr(3, secretReference, 'Secret that is handed to the plugin.'),
    readOnly: opt(4, boolean, 'Whether the volume may only be read.'),
    options: opt(5, map(string), 'Settings that are handed to the plugin as they are.'),
  },
)

export const azureFilePersistentVolumeSource = object(
  'io.k8s.api.core.v1.AzureFilePersistentVolumeSource',
  'A share of the Azure file service.',
  {
    secretName: req(1, string, 'Secret with the name and key of the Azure storage account.'),
    shareName: req(2, string, 'Name of the share.'),
    readOnly: opt(3, boolean, 'Whether the volume may only be read.'),
    secretNamespace: ptr(4, string, "Namespace of the secret; unset means the claim's namespace."),
  },
)

export const scaleIOPersistentVolumeSource = object(
  'io.k8s.api.core.v1.ScaleIOPersistentVolumeSource',
  'A volume of a ScaleIO installation; its plugin is gone.',
  {
    gateway: req(1, string, 'Address of the ScaleIO gateway.'),
    system: req(2, string, 'Name of the storage system at ScaleIO.'),
    secretRef: ptr(3, secretReference, 'Secret with the credentials for the gateway.'),
    sslEnabled: opt(4, boolean, 'Whether the gateway is reached over TLS.'),
    protectionDomain: opt(5, string, 'Protection domain that holds the volume.'),
    storagePool: opt(6, string, 'Storage pool of the protection domain.'),
    storageMode: opt(7, string, 'Whether the volume is thick or thin provisioned.', { default: 'ThinProvisioned' }),
    volumeName: opt(8, string, 'Name of the volume at ScaleIO.'),
    fsType: opt(9, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.', {
      default: 'xfs',
    }),
    readOnly: opt(10, boolean, 'Whether the volume may only be read.'),
  },
)

export const localVolumeSource = object(
  'io.k8s.api.core.v1.LocalVolumeSource',
  'A disk or directory of one node; the volume needs a node affinity.',
  {
    path: req(1, string, 'Path on the node: a directory, or a device to be mounted or used raw.'),
    fsType: ptr(2, string, 'File system to expect or to make when the path is a device.'),
  },
)

export const storageOSPersistentVolumeSource = object(
  'io.k8s.api.core.v1.StorageOSPersistentVolumeSource',
  'A volume of a StorageOS installation; its plugin is gone.',
  {
    volumeName: opt(1, string, 'Name of the volume at StorageOS.'),
    volumeNamespace: opt(2, string, 'Namespace of the volume at StorageOS.'),
    fsType: opt(3, string, 'File system on the volume, such as ext4; the driver chooses when it is empty.'),
    readOnly: opt(4, boolean, 'Whether the volume may only be read.'),
    secretRef: ptr(5, objectReference, 'Secret with the credentials for StorageOS.'),
  },
)

export const csiPersistentVolumeSource = object(
  'io.k8s.api.core.v1.CSIPersistentVolumeSource',
  'A volume of a CSI driver.',
  {
    driver: req(1, string, 'Name of the CSI driver that serves the volume.'),
    volumeHandle: req(2, string, 'Identifier of the volume at the driver.'),
    readOnly: opt(3, boolean, 'Whether the volume is always attached for reading only.'),
    fsType: opt(4, string, 'File system to make on the volume when it has none.'),
    volumeAttributes: opt(5, map(string), 'What the driver wants to be told about the volume whenever it is used.'),
    controllerPublishSecretRef: ptr(6, secretReference, 'Secret for attaching and detaching the volume.'),
    nodeStageSecretRef: ptr(7, secretReference, 'Secret for making the volume ready on a node.'),
    nodePublishSecretRef: ptr(8, secretReference, 'Secret for mounting the volume into a pod.'),
    controllerExpandSecretRef: ptr(
      9,
      secretReference,
      'Secret for growing the volume at the storage; may be added later, once.',
    ),
    nodeExpandSecretRef: ptr(10, secretReference, 'Secret for growing the file system on the node.'),
  },
)

export const persistentVolumeSource = object(
  'io.k8s.api.core.v1.PersistentVolumeSource',
  'Where the data of a volume is: exactly one of these.',
  {
    gcePersistentDisk: ptr(1, gcePersistentDiskVolumeSource, 'A Google Compute Engine persistent disk.'),
    awsElasticBlockStore: ptr(2, awsElasticBlockStoreVolumeSource, 'An AWS Elastic Block Store volume.'),
    hostPath: ptr(3, hostPathVolumeSource, 'A directory of the node itself, for tests on a single node.'),
    glusterfs: ptr(4, glusterfsPersistentVolumeSource, 'A GlusterFS volume; its plugin is gone.'),
    nfs: ptr(5, nfsVolumeSource, 'A directory exported by an NFS server.'),
    rbd: ptr(6, rbdPersistentVolumeSource, 'A Ceph block device image; its plugin is gone.'),
    iscsi: ptr(7, iscsiPersistentVolumeSource, 'A disk on an iSCSI target.'),
    cinder: ptr(8, cinderPersistentVolumeSource, 'An OpenStack Cinder volume.'),
    cephfs: ptr(9, cephFSPersistentVolumeSource, 'A directory of a Ceph file system; its plugin is gone.'),
    fc: ptr(10, fcVolumeSource, 'A Fibre Channel disk that is attached to the node.'),
    flocker: ptr(11, flockerVolumeSource, 'A dataset of a Flocker installation; its plugin is gone.'),
    flexVolume: ptr(12, flexPersistentVolumeSource, 'A volume handled by an executable plugin on the node.'),
    azureFile: ptr(13, azureFilePersistentVolumeSource, 'A share of the Azure file service.'),
    vsphereVolume: ptr(14, vsphereVirtualDiskVolumeSource, 'A virtual disk of a vSphere cluster.'),
    quobyte: ptr(15, quobyteVolumeSource, 'A volume of a Quobyte installation; its plugin is gone.'),
    azureDisk: ptr(16, azureDiskVolumeSource, 'An Azure data disk, managed or a blob.'),
    photonPersistentDisk: ptr(
      17,
      photonPersistentDiskVolumeSource,
      'A Photon Controller persistent disk; its plugin is gone.',
    ),
    portworxVolume: ptr(18, portworxVolumeSource, 'A volume of a Portworx installation.'),
    scaleIO: ptr(19, scaleIOPersistentVolumeSource, 'A volume of a ScaleIO installation; its plugin is gone.'),
    local: ptr(20, localVolumeSource, 'A disk or directory of one node; needs a node affinity.'),
    storageos: ptr(21, storageOSPersistentVolumeSource, 'A volume of a StorageOS installation; its plugin is gone.'),
    csi: ptr(22, csiPersistentVolumeSource, 'A volume of a CSI driver: the way storage is attached today.'),
  },
)

export const volumeNodeAffinity = object(
  'io.k8s.api.core.v1.VolumeNodeAffinity',
  'From which nodes a volume can be reached.',
  {
    required: ptr(1, nodeSelector, 'Nodes that can use the volume; pods that need it run only there.'),
  },
)

export const persistentVolumeSpec = object(
  'io.k8s.api.core.v1.PersistentVolumeSpec',
  'What the volume is, and the claim it belongs to.',
  {
    capacity: opt(
      1,
      map(quantity),
      'What the volume provides, by resource: storage, and iops and throughput (bytes/s) where known.',
    ),
    ...within(2, persistentVolumeSource.fields),
    accessModes: opt(
      3,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Ways in which the volume can be mounted; ReadWriteOncePod stands alone.',
    ),
    claimRef: ptr(4, objectReference, 'The claim this volume is bound to, or reserved for when it has no UID.', {
      atomic: false,
    }),
    persistentVolumeReclaimPolicy: opt(
      5,
      oneOf('Recycle', 'Delete', 'Retain'),
      'What happens when the claim is gone: Retain keeps the data, Delete removes it.',
      { default: 'Retain' },
    ),
    storageClassName: opt(6, string, 'Class the volume belongs to; empty for none.'),
    mountOptions: opt(
      7,
      list(string),
      'Options for mounting the volume, such as ro or soft; a wrong one makes the mount fail.',
    ),
    volumeMode: ptr(
      8,
      oneOf('Block', 'Filesystem'),
      'Filesystem to mount the volume as a directory, Block to offer the raw device.',
      { default: 'Filesystem' },
    ),
    nodeAffinity: ptr(9, volumeNodeAffinity, 'From which nodes the volume can be reached; can be set once.'),
    volumeAttributesClassName: ptr(10, string, 'Class of changeable attributes the volume has; only for CSI volumes.'),
  },
)

export type PersistentVolumeSpec = Infer<typeof persistentVolumeSpec>

export const persistentVolumeStatus = object(
  'io.k8s.api.core.v1.PersistentVolumeStatus',
  'Where the volume stands in its life; written by controllers.',
  {
    phase: opt(
      1,
      oneOf('Pending', 'Available', 'Bound', 'Released', 'Failed'),
      'Pending, Available for any claim, Bound to one, Released by it, or Failed to be reclaimed.',
      { default: 'Pending' },
    ),
    message: opt(2, string, 'A sentence for people about the current phase.'),
    reason: opt(3, string, 'One word for programs that says why the phase is what it is.'),
    lastPhaseTransitionTime: ptr(4, time, 'When the volume entered its current phase.'),
  },
)

export const persistentVolume = object(
  'io.k8s.api.core.v1.PersistentVolume',
  'A piece of storage in the cluster, made by a provisioner or an administrator.',
  {
    metadata: req(1, objectMeta, 'Name and labels of the volume; it belongs to no namespace.'),
    spec: opt(2, persistentVolumeSpec, 'What the volume is, and the claim it belongs to.'),
    status: opt(3, persistentVolumeStatus, 'Where the volume stands in its life; written by controllers.'),
  },
)

export type PersistentVolume = Infer<typeof persistentVolume>
