// The schemas of pod volumes. The sources that persistent volumes also have are in ../volume/volume-sources-schema.ts.

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
  within,
} from '../../schema.ts'
import { persistentVolumeClaimSpec } from '../claim/claim-schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'
import { localObjectReference } from '../shared/references-schema.ts'
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
} from '../volume/volume-sources-schema.ts'

const emptyDirVolumeSource = object(
  'io.k8s.api.core.v1.EmptyDirVolumeSource',
  'An initially empty directory with the lifetime of the pod.',
  {
    medium: opt(1, string, 'Empty for the disk of the node, Memory for tmpfs.'),
    sizeLimit: ptr(2, quantity, 'Maximum size of the contents; limited only by the node if unset.'),
    mode: ptr(3, int32, 'Permission bits of the directory, up to 01777; 0777 by default.'),
  },
)

const gitRepoVolumeSource = object(
  'io.k8s.api.core.v1.GitRepoVolumeSource',
  'A checkout of a git repository; deprecated: clone in an init container instead.',
  {
    repository: req(1, string, 'URL of the repository.'),
    revision: opt(2, string, 'Commit to check out after cloning.'),
    directory: opt(3, string, 'Target directory relative to the volume root; "." is the root.'),
  },
)

export const keyToPath = object('io.k8s.api.core.v1.KeyToPath', 'Maps an entry of a ConfigMap or Secret to a file.', {
  key: req(1, string, 'Key of the entry.'),
  path: req(2, string, 'Path of the file relative to the volume, without "..".'),
  mode: ptr(3, int32, 'Permission bits of the file, up to 0777; by default those of the volume.'),
  user: ptr(4, int64, 'User ID of the owner of the file; overrides the default of the volume.'),
})

const secretVolumeSource = object('io.k8s.api.core.v1.SecretVolumeSource', 'Files from the entries of a Secret.', {
  secretName: opt(1, string, 'Secret to read, from the namespace of the pod.'),
  items: opt(2, list(keyToPath), 'Entries to project and their paths; all entries if empty.'),
  defaultMode: ptr(3, int32, 'Default permission bits of the files; 0644 if unset.'),
  optional: ptr(4, boolean, 'Mount the volume even if the Secret or an entry does not exist.'),
  defaultUser: ptr(5, int64, 'Default user ID of the owner of the files.'),
})

const iscsiVolumeSource = object(
  'io.k8s.api.core.v1.ISCSIVolumeSource',
  'An iSCSI disk attached to the node and mounted in the pod.',
  {
    targetPortal: req(1, string, 'Address of the target, with the port unless it is 860 or 3260.'),
    iqn: req(2, string, 'Qualified name of the iSCSI target to log in to.'),
    lun: req(3, int32, 'Number of the logical unit on the target.'),
    iscsiInterface: opt(4, string, 'Interface to connect through; default, which is TCP, if unset.'),
    fsType: opt(5, string, 'File system on the disk; ext4 if unset.'),
    readOnly: opt(6, boolean, 'Mount the disk read-only; false by default.'),
    portals: opt(7, list(string), 'Further portal addresses for multipath.'),
    chapAuthDiscovery: opt(8, boolean, 'Whether discovery of targets uses CHAP authentication.'),
    chapAuthSession: opt(11, boolean, 'Whether the session uses CHAP authentication.'),
    secretRef: ptr(10, localObjectReference, 'Secret holding the CHAP credentials.'),
    initiatorName: ptr(12, string, 'Initiator name; overrides that of the interface.'),
  },
)

const glusterfsVolumeSource = object(
  'io.k8s.api.core.v1.GlusterfsVolumeSource',
  'A GlusterFS volume; deprecated and no longer supported.',
  {
    endpoints: req(1, string, 'Endpoints object that lists the Gluster servers.'),
    path: req(2, string, 'Name of the Gluster volume.'),
    readOnly: opt(3, boolean, 'Mount read-only; false by default.'),
  },
)

const persistentVolumeClaimVolumeSource = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource',
  'The persistent volume bound to a claim in the namespace of the pod.',
  {
    claimName: req(1, string, 'Name of the claim.'),
    readOnly: opt(2, boolean, 'Force every mount of this volume to be read-only; false by default.'),
  },
)

const rbdVolumeSource = object(
  'io.k8s.api.core.v1.RBDVolumeSource',
  'A Ceph block device image; deprecated and no longer supported.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    image: req(2, string, 'Name of the RADOS image.'),
    fsType: opt(3, string, 'File system on the image; ext4 if unset.'),
    pool: opt(4, string, 'RADOS pool the image is in; rbd by default.'),
    user: opt(5, string, 'RADOS user to log in as; admin by default.'),
    keyring: opt(6, string, 'Keyring file on the node; /etc/ceph/keyring by default.'),
    secretRef: ptr(7, localObjectReference, 'Secret with the login key, used instead of the keyring.'),
    readOnly: opt(8, boolean, 'Mount the image read-only; false by default.'),
  },
)

const flexVolumeSource = object(
  'io.k8s.api.core.v1.FlexVolumeSource',
  'A volume handled by an executable on the node; deprecated in favour of CSI.',
  {
    driver: req(1, string, 'Name of the driver.'),
    fsType: opt(2, string, 'File system to mount; the driver decides if unset.'),
    secretRef: ptr(3, localObjectReference, 'Secret that is passed to the driver.'),
    readOnly: opt(4, boolean, 'Mount read-only; false by default.'),
    options: opt(5, map(string), 'Options that are passed to the driver.'),
  },
)

const cinderVolumeSource = object(
  'io.k8s.api.core.v1.CinderVolumeSource',
  'An OpenStack Cinder volume; deprecated in favour of the Cinder CSI driver.',
  {
    volumeID: req(1, string, 'ID of the Cinder volume.'),
    fsType: opt(2, string, 'File system on the volume; ext4 if unset.'),
    readOnly: opt(3, boolean, 'Mount read-only; false by default.'),
    secretRef: ptr(4, localObjectReference, 'Secret with the parameters to connect to OpenStack.'),
  },
)

const cephFSVolumeSource = object(
  'io.k8s.api.core.v1.CephFSVolumeSource',
  'A directory of a Ceph file system; deprecated and no longer supported.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    path: opt(2, string, 'Directory to mount; the root of the file system by default.'),
    user: opt(3, string, 'Ceph user to log in as; admin by default.'),
    secretFile: opt(4, string, 'File on the node with the key; /etc/ceph/user.secret by default.'),
    secretRef: ptr(5, localObjectReference, 'Secret with the key, used instead of the file.'),
    readOnly: opt(6, boolean, 'Mount the directory read-only; false by default.'),
  },
)

export const objectFieldSelector = object(
  'io.k8s.api.core.v1.ObjectFieldSelector',
  'Selects a field of the pod.',
  {
    apiVersion: opt(1, string, 'API version of the field path; v1 by default.'),
    fieldPath: req(2, string, "Path of the field, for example metadata.labels['app'] or status.podIP."),
  },
  { atomic: true },
)

export const resourceFieldSelector = object(
  'io.k8s.api.core.v1.ResourceFieldSelector',
  'Selects a resource request or limit of a container.',
  {
    containerName: opt(1, string, 'Name of the container; required in volumes, optional in environment variables.'),
    resource: req(2, string, 'Resource, such as limits.cpu or requests.memory.'),
    divisor: opt(3, quantity, 'Divisor of the output, such as 1Mi for mebibytes; 0 means 1.', {
      default: '0',
    }),
  },
  { atomic: true },
)

export const downwardAPIVolumeFile = object(
  'io.k8s.api.core.v1.DownwardAPIVolumeFile',
  'A file with information about the pod.',
  {
    path: req(1, string, 'Path of the file relative to the volume, without "..".'),
    fieldRef: ptr(2, objectFieldSelector, 'Field of the pod: annotations, labels, name, namespace or uid.'),
    resourceFieldRef: ptr(3, resourceFieldSelector, 'Resource request or limit of a container.'),
    mode: ptr(4, int32, 'Permission bits of the file, up to 0777; by default those of the volume.'),
    user: ptr(5, int64, 'User ID of the owner of the file; overrides the default of the volume.'),
  },
)

const downwardAPIVolumeSource = object(
  'io.k8s.api.core.v1.DownwardAPIVolumeSource',
  'Files with information about the pod.',
  {
    items: opt(1, list(downwardAPIVolumeFile), 'Files and their contents.'),
    defaultMode: ptr(2, int32, 'Default permission bits of the files; 0644 if unset.'),
    defaultUser: ptr(3, int64, 'Default user ID of the owner of the files.'),
  },
)

const azureFileVolumeSource = object(
  'io.k8s.api.core.v1.AzureFileVolumeSource',
  'An Azure file share; deprecated in favour of the Azure Files CSI driver.',
  {
    secretName: req(1, string, 'Secret with the name and key of the storage account.'),
    shareName: req(2, string, 'Name of the share.'),
    readOnly: opt(3, boolean, 'Mount the share read-only; false by default.'),
  },
)

const configMapVolumeSource = object(
  'io.k8s.api.core.v1.ConfigMapVolumeSource',
  'Files from the entries of a ConfigMap.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to project and their paths; all entries if empty.'),
    defaultMode: ptr(3, int32, 'Default permission bits of the files; 0644 if unset.'),
    optional: ptr(4, boolean, 'Mount the volume even if the ConfigMap or an entry does not exist.'),
    defaultUser: ptr(5, int64, 'Default user ID of the owner of the files.'),
  },
)

const secretProjection = object(
  'io.k8s.api.core.v1.SecretProjection',
  'Files from a Secret, as part of a projected volume.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to project and their paths; all entries if empty.'),
    optional: ptr(4, boolean, 'Omit the files if the Secret or an entry does not exist.'),
  },
)

const downwardAPIProjection = object(
  'io.k8s.api.core.v1.DownwardAPIProjection',
  'Files with information about the pod, as part of a projected volume.',
  {
    items: opt(1, list(downwardAPIVolumeFile), 'Files and their contents.'),
  },
)

const configMapProjection = object(
  'io.k8s.api.core.v1.ConfigMapProjection',
  'Files from a ConfigMap, as part of a projected volume.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to project and their paths; all entries if empty.'),
    optional: ptr(4, boolean, 'Omit the files if the ConfigMap or an entry does not exist.'),
  },
)

export const serviceAccountTokenProjection = object(
  'io.k8s.api.core.v1.ServiceAccountTokenProjection',
  'A service account token that is renewed before it expires, as part of a projected volume.',
  {
    audience: opt(1, string, 'Audience of the token; by default the API server.'),
    expirationSeconds: ptr(2, int64, 'Requested lifetime in seconds, at least 600; 3600 by default.'),
    path: req(3, string, 'Path of the token file relative to the volume.'),
    user: ptr(4, int64, 'User ID of the owner of the file; overrides the default of the volume.'),
  },
)

export const clusterTrustBundleProjection = object(
  'io.k8s.api.core.v1.ClusterTrustBundleProjection',
  'Trusted root certificates in one file, as part of a projected volume.',
  {
    name: ptr(1, string, 'Name of a ClusterTrustBundle; excludes signerName and labelSelector.'),
    signerName: ptr(
      2,
      string,
      'Uses the bundles of this signer that labelSelector selects, merged without duplicates; excludes name.',
    ),
    labelSelector: ptr(3, labelSelector, 'Selects bundles of the signer; none if unset, all if empty.'),
    optional: ptr(5, boolean, 'Start the pod even if no such bundle exists.'),
    path: req(4, string, 'Path of the certificate file relative to the volume.'),
    user: ptr(6, int64, 'User ID of the owner of the file; overrides the default of the volume.'),
  },
)

const podCertificateProjection = object(
  'io.k8s.api.core.v1.PodCertificateProjection',
  'A private key and certificate issued for the pod, as part of a projected volume.',
  {
    signerName: opt(1, string, 'Signer of the certificate.'),
    keyType: opt(2, string, 'Type of the key: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.'),
    maxExpirationSeconds: ptr(3, int32, 'Maximum lifetime, from 3600 to 7862400 seconds; 86400 by default.'),
    credentialBundlePath: opt(
      4,
      string,
      'Path of one file with the key and the certificates, which are always consistent.',
    ),
    keyPath: opt(5, string, 'Path of the key file; it may briefly not match the certificates.'),
    certificateChainPath: opt(6, string, 'Path of the certificate file; it may briefly not match the key.'),
    userAnnotations: opt(
      7,
      map(string),
      'Data that is passed to the signer without validation; keys need a domain prefix.',
    ),
    user: ptr(8, int64, 'User ID of the owner of the file; overrides the default of the volume.'),
  },
)

export const volumeProjection = object(
  'io.k8s.api.core.v1.VolumeProjection',
  'A source of files in a projected volume; exactly one must be set.',
  {
    secret: ptr(1, secretProjection, 'Entries of a Secret.'),
    downwardAPI: ptr(2, downwardAPIProjection, 'Files with information about the pod.'),
    configMap: ptr(3, configMapProjection, 'Entries of a ConfigMap.'),
    serviceAccountToken: ptr(4, serviceAccountTokenProjection, 'A token for the service account of the pod.'),
    clusterTrustBundle: ptr(5, clusterTrustBundleProjection, 'Trusted root certificates in one file.'),
    podCertificate: ptr(6, podCertificateProjection, 'A private key and certificate issued for this pod.'),
  },
)

export const projectedVolumeSource = object(
  'io.k8s.api.core.v1.ProjectedVolumeSource',
  'Several sources of files, projected into one directory.',
  {
    sources: req(1, list(volumeProjection), 'Sources of the files.'),
    defaultMode: ptr(2, int32, 'Default permission bits of the files; 0644 if unset.'),
    defaultUser: ptr(3, int64, 'Default user ID of the owner of the files.'),
  },
)

const scaleIOVolumeSource = object(
  'io.k8s.api.core.v1.ScaleIOVolumeSource',
  'A ScaleIO volume; deprecated and no longer supported.',
  {
    gateway: req(1, string, 'Address of the ScaleIO API gateway.'),
    system: req(2, string, 'Name of the storage system in ScaleIO.'),
    secretRef: ptr(3, localObjectReference, 'Secret with the user and password for ScaleIO.'),
    sslEnabled: opt(4, boolean, 'Whether to connect to the gateway over TLS; false by default.'),
    protectionDomain: opt(5, string, 'ScaleIO protection domain that holds the storage.'),
    storagePool: opt(6, string, 'Storage pool within the protection domain.'),
    storageMode: opt(7, string, 'ThickProvisioned or ThinProvisioned; ThinProvisioned by default.'),
    volumeName: opt(8, string, 'Volume that already exists in ScaleIO.'),
    fsType: opt(9, string, 'File system to mount; xfs if unset.'),
    readOnly: opt(10, boolean, 'Mount read-only; false by default.'),
  },
)

const storageOSVolumeSource = object(
  'io.k8s.api.core.v1.StorageOSVolumeSource',
  'A StorageOS volume; deprecated and no longer supported.',
  {
    volumeName: opt(1, string, 'Name of the volume within its StorageOS namespace.'),
    volumeNamespace: opt(2, string, 'StorageOS namespace of the volume; by default that of the pod.'),
    fsType: opt(3, string, 'File system to mount; ext4 if unset.'),
    readOnly: opt(4, boolean, 'Mount read-only; false by default.'),
    secretRef: ptr(5, localObjectReference, 'Secret with the credentials for StorageOS.'),
  },
)

const csiVolumeSource = object(
  'io.k8s.api.core.v1.CSIVolumeSource',
  'A volume that a CSI driver creates for this pod, without a claim.',
  {
    driver: req(1, string, 'Name of the CSI driver.'),
    readOnly: ptr(2, boolean, 'Mount read-only; false by default.'),
    fsType: ptr(3, string, 'File system to mount; the driver decides if unset.'),
    volumeAttributes: opt(4, map(string), 'Driver-specific attributes of the volume.'),
    nodePublishSecretRef: ptr(5, localObjectReference, 'Secret for NodePublishVolume.'),
  },
)

const persistentVolumeClaimTemplate = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimTemplate',
  'Template of a claim that is created for the pod.',
  {
    metadata: opt(1, objectMeta, 'Labels and annotations of the claim; no other fields are allowed.'),
    spec: req(2, persistentVolumeClaimSpec, 'Spec of the claim.'),
  },
)

const ephemeralVolumeSource = object(
  'io.k8s.api.core.v1.EphemeralVolumeSource',
  'A claim that is created for the pod and deleted with it.',
  {
    volumeClaimTemplate: ptr(1, persistentVolumeClaimTemplate, 'Template of the claim, which is named <pod>-<volume>.'),
  },
)

const imageVolumeSource = object(
  'io.k8s.api.core.v1.ImageVolumeSource',
  'The contents of a container image or artifact, mounted read-only.',
  {
    reference: opt(1, string, 'Reference of the image or artifact.'),
    pullPolicy: opt(
      2,
      oneOf('Always', 'Never', 'IfNotPresent'),
      'When to fetch it; Always for the latest tag, otherwise IfNotPresent.',
    ),
  },
)

export const volumeSource = object(
  'io.k8s.api.core.v1.VolumeSource',
  'Source of a volume; exactly one, or none for an emptyDir.',
  {
    hostPath: ptr(1, hostPathVolumeSource, 'A file or directory of the node; avoid it, because it exposes the node.'),
    emptyDir: ptr(2, emptyDirVolumeSource, 'An initially empty directory with the lifetime of the pod.'),
    gcePersistentDisk: ptr(
      3,
      gcePersistentDiskVolumeSource,
      'A Google Compute Engine disk; deprecated in favour of its CSI driver.',
    ),
    awsElasticBlockStore: ptr(
      4,
      awsElasticBlockStoreVolumeSource,
      'An AWS EBS disk; deprecated in favour of its CSI driver.',
    ),
    gitRepo: ptr(5, gitRepoVolumeSource, 'A checkout of a git repository; deprecated and switched off by default.'),
    secret: ptr(6, secretVolumeSource, 'Files from the entries of a Secret.'),
    nfs: ptr(7, nfsVolumeSource, 'A directory exported by an NFS server.'),
    iscsi: ptr(8, iscsiVolumeSource, 'A disk reached over iSCSI.'),
    glusterfs: ptr(9, glusterfsVolumeSource, 'A GlusterFS volume; deprecated and no longer supported.'),
    persistentVolumeClaim: ptr(
      10,
      persistentVolumeClaimVolumeSource,
      'The persistent volume bound to a claim in the same namespace.',
    ),
    rbd: ptr(11, rbdVolumeSource, 'A Ceph block device image; deprecated and no longer supported.'),
    flexVolume: ptr(
      12,
      flexVolumeSource,
      'A volume handled by an executable on the node; deprecated in favour of CSI.',
    ),
    cinder: ptr(13, cinderVolumeSource, 'An OpenStack Cinder volume; deprecated in favour of its CSI driver.'),
    cephfs: ptr(14, cephFSVolumeSource, 'A directory of a Ceph file system; deprecated and no longer supported.'),
    flocker: ptr(15, flockerVolumeSource, 'A Flocker dataset; deprecated and no longer supported.'),
    downwardAPI: ptr(16, downwardAPIVolumeSource, 'Files with information about the pod.'),
    fc: ptr(17, fcVolumeSource, 'A disk reached over Fibre Channel.'),
    azureFile: ptr(18, azureFileVolumeSource, 'An Azure file share; deprecated in favour of its CSI driver.'),
    configMap: ptr(19, configMapVolumeSource, 'Files from the entries of a ConfigMap.'),
    vsphereVolume: ptr(
      20,
      vsphereVirtualDiskVolumeSource,
      'A vSphere virtual disk; deprecated in favour of its CSI driver.',
    ),
    quobyte: ptr(21, quobyteVolumeSource, 'A Quobyte volume; deprecated and no longer supported.'),
    azureDisk: ptr(22, azureDiskVolumeSource, 'An Azure data disk; deprecated in favour of its CSI driver.'),
    photonPersistentDisk: ptr(
      23,
      photonPersistentDiskVolumeSource,
      'A Photon Controller disk; deprecated and no longer supported.',
    ),
    projected: ptr(26, projectedVolumeSource, 'Several sources of files, projected into one directory.'),
    portworxVolume: ptr(24, portworxVolumeSource, 'A Portworx volume; deprecated in favour of its CSI driver.'),
    scaleIO: ptr(25, scaleIOVolumeSource, 'A ScaleIO volume; deprecated and no longer supported.'),
    storageos: ptr(27, storageOSVolumeSource, 'A StorageOS volume; deprecated and no longer supported.'),
    csi: ptr(28, csiVolumeSource, 'A volume that a CSI driver creates for this pod.'),
    ephemeral: ptr(29, ephemeralVolumeSource, 'A claim that is created for the pod and deleted with it.'),
    image: ptr(30, imageVolumeSource, 'Contents of a container image or artifact, mounted read-only.'),
  },
)

export const volume = object('io.k8s.api.core.v1.Volume', 'A volume that containers of a pod can mount.', {
  name: req(1, string, 'Name for references from containers; a DNS label, unique in the pod.'),
  ...within(2, volumeSource.fields),
})

export type Volume = Infer<typeof volume>
