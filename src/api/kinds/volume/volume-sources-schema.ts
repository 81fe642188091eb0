// The schemas of volume sources that persistent volumes and pods share. Sources of removed plugins are included, so that
// objects that use them can still be read and written.
import { boolean, type Infer, int32, list, object, oneOf, opt, ptr, req, string } from '../../schema.ts'

export const gcePersistentDiskVolumeSource = object(
  'io.k8s.api.core.v1.GCEPersistentDiskVolumeSource',
  'A Google Compute Engine persistent disk.',
  {
    pdName: req(1, string, 'Name of the disk.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    partition: opt(3, int32, 'Partition to mount; zero for the whole disk.'),
    readOnly: opt(4, boolean, 'Whether the volume is read-only.'),
  },
)

export const awsElasticBlockStoreVolumeSource = object(
  'io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource',
  'An AWS Elastic Block Store volume.',
  {
    volumeID: req(1, string, 'ID of the AWS volume.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    partition: opt(3, int32, 'Partition to mount; zero for the whole disk.'),
    readOnly: opt(4, boolean, 'Whether the volume is read-only.'),
  },
)

export const hostPathVolumeSource = object(
  'io.k8s.api.core.v1.HostPathVolumeSource',
  'A file or directory of the node.',
  {
    path: req(1, string, 'Path on the node; symbolic links are followed.'),
    type: ptr(
      2,
      oneOf('', 'DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'),
      'Required type of the file, or type to create; empty skips the check.',
      { default: '' },
    ),
  },
)

export type HostPathVolumeSource = Infer<typeof hostPathVolumeSource>

export const nfsVolumeSource = object('io.k8s.api.core.v1.NFSVolumeSource', 'A directory exported by an NFS server.', {
  server: req(1, string, 'Host name or address of the NFS server.'),
  path: req(2, string, 'Absolute path that the server exports.'),
  readOnly: opt(3, boolean, 'Whether the export is mounted read-only.'),
})

export const photonPersistentDiskVolumeSource = object(
  'io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource',
  'A Photon Controller persistent disk; deprecated and no longer supported.',
  {
    pdID: req(1, string, 'ID of the Photon Controller disk.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
  },
)

export const vsphereVirtualDiskVolumeSource = object(
  'io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource',
  'A virtual disk of a vSphere cluster.',
  {
    volumePath: req(1, string, 'Path of the virtual disk file on its datastore.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    storagePolicyName: opt(3, string, 'Name of the vSphere storage policy of the disk.'),
    storagePolicyID: opt(4, string, 'ID of the vSphere storage policy of the disk.'),
  },
)

export const fcVolumeSource = object(
  'io.k8s.api.core.v1.FCVolumeSource',
  'A Fibre Channel disk, identified by target and LUN or by WWID.',
  {
    targetWWNs: opt(1, list(string), 'World wide names of the targets; requires lun, excludes wwids.'),
    lun: ptr(2, int32, 'Logical unit number at the targets, 0 to 255.'),
    fsType: opt(3, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    readOnly: opt(4, boolean, 'Whether the volume is read-only.'),
    wwids: opt(5, list(string), 'World wide identifiers of the disk; used instead of targetWWNs and lun.'),
  },
)

export const quobyteVolumeSource = object(
  'io.k8s.api.core.v1.QuobyteVolumeSource',
  'A volume of a Quobyte installation; deprecated and no longer supported.',
  {
    registry: req(1, string, 'Registry services as host:port pairs, separated by commas.'),
    volume: req(2, string, 'Name of the volume at Quobyte.'),
    readOnly: opt(3, boolean, 'Whether the volume is read-only.'),
    user: opt(4, string, 'User that the volume is mounted as.'),
    group: opt(5, string, 'Group that the volume is mounted as.'),
    tenant: opt(6, string, 'Tenant that owns the volume at Quobyte.'),
  },
)

export const flockerVolumeSource = object(
  'io.k8s.api.core.v1.FlockerVolumeSource',
  'A dataset of a Flocker installation; deprecated and no longer supported.',
  {
    datasetName: opt(1, string, 'Name of the dataset; excludes datasetUUID.'),
    datasetUUID: opt(2, string, 'UUID of the dataset; excludes datasetName.'),
  },
)

export const azureDiskVolumeSource = object('io.k8s.api.core.v1.AzureDiskVolumeSource', 'An Azure data disk.', {
  diskName: req(1, string, 'Name of the disk at Azure.'),
  diskURI: req(2, string, 'Resource ID of a managed disk, or URL of a blob.'),
  cachingMode: ptr(
    3,
    oneOf('None', 'ReadOnly', 'ReadWrite'),
    'Host caching of the disk: None, ReadOnly or ReadWrite.',
    { default: 'ReadWrite' },
  ),
  fsType: ptr(4, string, 'File system on the volume.', { default: 'ext4' }),
  readOnly: ptr(5, boolean, 'Whether the volume is read-only.', { default: false }),
  kind: ptr(
    6,
    oneOf('Shared', 'Dedicated', 'Managed'),
    'Managed, or a blob in a Shared or Dedicated storage account.',
    { default: 'Shared' },
  ),
})

export const portworxVolumeSource = object(
  'io.k8s.api.core.v1.PortworxVolumeSource',
  'A volume of a Portworx installation.',
  {
    volumeID: req(1, string, 'ID of the Portworx volume.'),
    fsType: opt(2, string, 'File system on the volume, such as ext4; chosen by the driver if empty.'),
    readOnly: opt(3, boolean, 'Whether the volume is read-only.'),
  },
)
