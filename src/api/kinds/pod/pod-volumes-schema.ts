// Every kind of storage a pod can name in spec.volumes: scratch space, files made from API objects,
// claims, and the older network and cloud types. Sources that persistent volumes use in the same form
// are declared in volume-sources.ts.

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

export const emptyDirVolumeSource = object(
  'io.k8s.api.core.v1.EmptyDirVolumeSource',
  'Scratch space that starts empty and lives exactly as long as the pod.',
  {
    medium: opt(1, string, 'Leave empty for disk of the node, or Memory for a RAM-backed file system.'),
    sizeLimit: ptr(2, quantity, 'Most the directory may hold; without it only the node sets a bound.'),
    mode: ptr(3, int32, 'Permission bits of the directory, up to 01777; 0777 by default.'),
  },
)

export const gitRepoVolumeSource = object(
  'io.k8s.api.core.v1.GitRepoVolumeSource',
  'A checkout of a git repository; deprecated, as an init container can clone instead.',
  {
    repository: req(1, string, 'Address of the repository to clone.'),
    revision: opt(2, string, 'Commit to check out after cloning.'),
    directory: opt(3, string, 'Directory to clone into, relative to the volume root; "." means the root itself.'),
  },
)

export const keyToPath = object(
  'io.k8s.api.core.v1.KeyToPath',
  'Which file an entry of a ConfigMap or Secret becomes.',
  {
    key: req(1, string, 'Entry whose value fills the file.'),
    path: req(2, string, 'Name of the file, relative to the volume and without "..".'),
    mode: ptr(3, int32, 'Permission bits of the file, up to 0777; by default those of the volume.'),
    user: ptr(4, int64, 'User ID that owns the file, before the default of the volume.'),
  },
)

export const secretVolumeSource = object(
  'io.k8s.api.core.v1.SecretVolumeSource',
  'Files made from the entries of a Secret.',
  {
    secretName: opt(1, string, 'Secret to read, from the namespace of the pod.'),
    items: opt(2, list(keyToPath), 'Entries to show and under which paths; all of them when left out.'),
    defaultMode: ptr(3, int32, 'Permission bits of files that name none; 0644 by default.'),
    optional: ptr(4, boolean, 'Mount the volume even when the Secret or an entry is missing.'),
    defaultUser: ptr(5, int64, 'User ID that owns files which name no owner.'),
  },
)

export const iscsiVolumeSource = object(
  'io.k8s.api.core.v1.ISCSIVolumeSource',
  'An iSCSI disk attached to the node and mounted in the pod.',
  {
    targetPortal: req(1, string, 'Address of the target, with its port unless that is 860 or 3260.'),
    iqn: req(2, string, 'Qualified name of the iSCSI target to log in to.'),
    lun: req(3, int32, 'Number of the logical unit on the target.'),
    iscsiInterface: opt(4, string, 'Interface to connect through; default, which is TCP, when left out.'),
    fsType: opt(5, string, 'File system on the disk; ext4 when left out.'),
    readOnly: opt(6, boolean, 'Mount the disk without allowing writes; false by default.'),
    portals: opt(7, list(string), 'Further portal addresses, for reaching the target over several paths.'),
    chapAuthDiscovery: opt(8, boolean, 'Whether discovery of targets uses CHAP authentication.'),
    chapAuthSession: opt(11, boolean, 'Whether the session uses CHAP authentication.'),
    secretRef: ptr(10, localObjectReference, 'Secret holding the CHAP credentials.'),
    initiatorName: ptr(12, string, 'Initiator name to use instead of the one of the interface.'),
  },
)

export const glusterfsVolumeSource = object(
  'io.k8s.api.core.v1.GlusterfsVolumeSource',
  'A GlusterFS volume; deprecated and no longer mounted.',
  {
    endpoints: req(1, string, 'Endpoints object that lists the Gluster servers.'),
    path: req(2, string, 'Which Gluster volume to mount.'),
    readOnly: opt(3, boolean, 'Mount the volume without allowing writes; false by default.'),
  },
)

export const persistentVolumeClaimVolumeSource = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource',
  'The persistent volume bound to a claim in the namespace of the pod.',
  {
    claimName: req(1, string, 'Claim whose volume the pod uses.'),
    readOnly: opt(2, boolean, 'Force every mount of this volume to be read-only; false by default.'),
  },
)

export const rbdVolumeSource = object(
  'io.k8s.api.core.v1.RBDVolumeSource',
  'A Ceph block device image; deprecated and no longer mounted.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    image: req(2, string, 'Which RADOS image to map.'),
    fsType: opt(3, string, 'File system on the image; ext4 when left out.'),
    pool: opt(4, string, 'RADOS pool the image is in; rbd by default.'),
    user: opt(5, string, 'RADOS user to log in as; admin by default.'),
    keyring: opt(6, string, 'Keyring file on the node; /etc/ceph/keyring by default.'),
    secretRef: ptr(7, localObjectReference, 'Secret with the login key, used instead of the keyring.'),
    readOnly: opt(8, boolean, 'Mount the image without allowing writes; false by default.'),
  },
)

export const flexVolumeSource = object(
  'io.k8s.api.core.v1.FlexVolumeSource',
  'A volume handled by an executable on the node; deprecated in favour of CSI.',
  {
    driver: req(1, string, 'Name of the executable driver that mounts it.'),
    fsType: opt(2, string, 'File system to mount; the driver decides when left out.'),
    secretRef: ptr(3, localObjectReference, 'Secret whose contents are passed to the driver.'),
    readOnly: opt(4, boolean, 'Mount the volume without allowing writes; false by default.'),
    options: opt(5, map(string), 'Further settings handed to the driver as they are.'),
  },
)

export const cinderVolumeSource = object(
  'io.k8s.api.core.v1.CinderVolumeSource',
  'An OpenStack Cinder volume; deprecated in favour of the Cinder CSI driver.',
  {
    volumeID: req(1, string, 'Identifier of the volume in Cinder.'),
    fsType: opt(2, string, 'File system on the volume; ext4 when left out.'),
    readOnly: opt(3, boolean, 'Mount the volume without allowing writes; false by default.'),
    secretRef: ptr(4, localObjectReference, 'Secret with what is needed to reach OpenStack.'),
  },
)

export const cephFSVolumeSource = object(
  'io.k8s.api.core.v1.CephFSVolumeSource',
  'A directory of a Ceph file system; deprecated and no longer mounted.',
  {
    monitors: req(1, list(string), 'Addresses of the Ceph monitors.'),
    path: opt(2, string, 'Directory to mount; the root of the file system by default.'),
    user: opt(3, string, 'Ceph user to log in as; admin by default.'),
    secretFile: opt(4, string, 'File on the node with the key; /etc/ceph/user.secret by default.'),
    secretRef: ptr(5, localObjectReference, 'Secret with the key, used instead of the file.'),
    readOnly: opt(6, boolean, 'Mount the directory without allowing writes; false by default.'),
  },
)

export const objectFieldSelector = object(
  'io.k8s.api.core.v1.ObjectFieldSelector',
  'Picks one field of the pod.',
  {
    apiVersion: opt(1, string, 'Version of the schema the path is written for; v1 by default.'),
    fieldPath: req(2, string, "Path of the field, for example metadata.labels['app'] or status.podIP."),
  },
  { atomic: true },
)

export const resourceFieldSelector = object(
  'io.k8s.api.core.v1.ResourceFieldSelector',
  'Picks a resource request or limit of a container.',
  {
    containerName: opt(1, string, 'Container to look at; needed in volumes, optional in environment variables.'),
    resource: req(2, string, 'Which figure to read, such as limits.cpu or requests.memory.'),
    divisor: opt(3, quantity, 'Unit the figure is expressed in; 0 stands for 1, and 1Mi gives mebibytes.', {
      default: '0',
    }),
  },
  { atomic: true },
)

export const downwardAPIVolumeFile = object(
  'io.k8s.api.core.v1.DownwardAPIVolumeFile',
  'A file holding one fact about the pod.',
  {
    path: req(1, string, 'Name of the file, relative to the volume and without "..".'),
    fieldRef: ptr(2, objectFieldSelector, 'Field of the pod to write: annotations, labels, name, namespace or uid.'),
    resourceFieldRef: ptr(3, resourceFieldSelector, 'Resource request or limit of a container to write.'),
    mode: ptr(4, int32, 'Permission bits of the file, up to 0777; by default those of the volume.'),
    user: ptr(5, int64, 'User ID that owns the file, before the default of the volume.'),
  },
)

export const downwardAPIVolumeSource = object(
  'io.k8s.api.core.v1.DownwardAPIVolumeSource',
  'Files holding facts about the pod itself.',
  {
    items: opt(1, list(downwardAPIVolumeFile), 'Files to make, and what each of them holds.'),
    defaultMode: ptr(2, int32, 'Permission bits of files that name none; 0644 by default.'),
    defaultUser: ptr(3, int64, 'User ID that owns files which name no owner.'),
  },
)

export const azureFileVolumeSource = object(
  'io.k8s.api.core.v1.AzureFileVolumeSource',
  'An Azure file share; deprecated in favour of the Azure Files CSI driver.',
  {
    secretName: req(1, string, 'Secret with the name and key of the storage account.'),
    shareName: req(2, string, 'Which Azure share to mount.'),
    readOnly: opt(3, boolean, 'Mount the share without allowing writes; false by default.'),
  },
)

export const configMapVolumeSource = object(
  'io.k8s.api.core.v1.ConfigMapVolumeSource',
  'Files made from the entries of a ConfigMap.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to show and under which paths; all of them when left out.'),
    defaultMode: ptr(3, int32, 'Permission bits of files that name none; 0644 by default.'),
    optional: ptr(4, boolean, 'Mount the volume even when the ConfigMap or an entry is missing.'),
    defaultUser: ptr(5, int64, 'User ID that owns files which name no owner.'),
  },
)

export const secretProjection = object(
  'io.k8s.api.core.v1.SecretProjection',
  'Files from a Secret, as part of a projected volume.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to show and under which paths; all of them when left out.'),
    optional: ptr(4, boolean, 'Carry on without these files when the Secret or an entry is missing.'),
  },
)

export const downwardAPIProjection = object(
  'io.k8s.api.core.v1.DownwardAPIProjection',
  'Files with facts about the pod, as part of a projected volume.',
  {
    items: opt(1, list(downwardAPIVolumeFile), 'Files to make, and what each of them holds.'),
  },
)

export const configMapProjection = object(
  'io.k8s.api.core.v1.ConfigMapProjection',
  'Files from a ConfigMap, as part of a projected volume.',
  {
    ...within(1, localObjectReference.fields),
    items: opt(2, list(keyToPath), 'Entries to show and under which paths; all of them when left out.'),
    optional: ptr(4, boolean, 'Carry on without these files when the ConfigMap or an entry is missing.'),
  },
)

export const serviceAccountTokenProjection = object(
  'io.k8s.api.core.v1.ServiceAccountTokenProjection',
  'A service account token, renewed in time, as part of a projected volume.',
  {
    audience: opt(1, string, 'Who the token is meant for; by default the API server.'),
    expirationSeconds: ptr(2, int64, 'Wanted lifetime in seconds, at least 600; 3600 by default.'),
    path: req(3, string, 'File that holds the token, relative to the volume.'),
    user: ptr(4, int64, 'User ID that owns the file, before the default of the volume.'),
  },
)

export const clusterTrustBundleProjection = object(
  'io.k8s.api.core.v1.ClusterTrustBundleProjection',
  'Trusted root certificates in one file, as part of a projected volume.',
  {
    name: ptr(1, string, 'The one ClusterTrustBundle to use; excludes signerName and labelSelector.'),
    signerName: ptr(2, string, 'Use all bundles of this signer, merged without duplicates; excludes name.'),
    labelSelector: ptr(3, labelSelector, 'Narrows the bundles of the signer; unset matches none, empty matches all.'),
    optional: ptr(5, boolean, 'Start the pod even when no such bundle exists.'),
    path: req(4, string, 'File that holds the certificates, relative to the volume.'),
    user: ptr(6, int64, 'User ID that owns the file, before the default of the volume.'),
  },
)

export const podCertificateProjection = object(
  'io.k8s.api.core.v1.PodCertificateProjection',
  'A private key and certificate issued for the pod, as part of a projected volume.',
  {
    signerName: opt(1, string, 'Signer that is asked to issue the certificate.'),
    keyType: opt(2, string, 'Key to generate: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.'),
    maxExpirationSeconds: ptr(3, int32, 'Longest lifetime wanted, from 3600 to 7862400 seconds; 86400 by default.'),
    credentialBundlePath: opt(
      4,
      string,
      'File for key and certificates together, so that both are always read in step.',
    ),
    keyPath: opt(5, string, 'File for the key alone; it may briefly not match the certificates.'),
    certificateChainPath: opt(6, string, 'File for the certificates alone; they may briefly not match the key.'),
    userAnnotations: opt(7, map(string), 'Extra data passed to the signer unchecked; keys carry a domain prefix.'),
    user: ptr(8, int64, 'User ID that owns the file, before the default of the volume.'),
  },
)

export const volumeProjection = object(
  'io.k8s.api.core.v1.VolumeProjection',
  'One source of files in a projected volume; choose exactly one.',
  {
    secret: ptr(1, secretProjection, 'Files made from a Secret.'),
    downwardAPI: ptr(2, downwardAPIProjection, 'Files with facts about the pod.'),
    configMap: ptr(3, configMapProjection, 'Files made from a ConfigMap.'),
    serviceAccountToken: ptr(4, serviceAccountTokenProjection, 'A token for the service account of the pod.'),
    clusterTrustBundle: ptr(5, clusterTrustBundleProjection, 'Root certificates to be trusted, in a single file.'),
    podCertificate: ptr(6, podCertificateProjection, 'A private key and certificate issued for this pod.'),
  },
)

export const projectedVolumeSource = object(
  'io.k8s.api.core.v1.ProjectedVolumeSource',
  'Several sources of files shown together in one directory.',
  {
    sources: req(1, list(volumeProjection), 'What to put into the directory, each entry one source.'),
    defaultMode: ptr(2, int32, 'Permission bits of files that name none; 0644 by default.'),
    defaultUser: ptr(3, int64, 'User ID that owns files which name no owner.'),
  },
)

export const scaleIOVolumeSource = object(
  'io.k8s.api.core.v1.ScaleIOVolumeSource',
  'A ScaleIO volume; deprecated and no longer mounted.',
  {
    gateway: req(1, string, 'Where the API gateway of ScaleIO is reached.'),
    system: req(2, string, 'Name of the storage system in ScaleIO.'),
    secretRef: ptr(3, localObjectReference, 'Secret with the user and password for ScaleIO.'),
    sslEnabled: opt(4, boolean, 'Whether to talk to the gateway over TLS; false by default.'),
    protectionDomain: opt(5, string, 'ScaleIO protection domain that holds the storage.'),
    storagePool: opt(6, string, 'Storage pool within the protection domain.'),
    storageMode: opt(7, string, 'ThickProvisioned or ThinProvisioned; ThinProvisioned by default.'),
    volumeName: opt(8, string, 'Volume that already exists in ScaleIO.'),
    fsType: opt(9, string, 'File system to mount; xfs when left out.'),
    readOnly: opt(10, boolean, 'Mount the volume without allowing writes; false by default.'),
  },
)

export const storageOSVolumeSource = object(
  'io.k8s.api.core.v1.StorageOSVolumeSource',
  'A StorageOS volume; deprecated and no longer mounted.',
  {
    volumeName: opt(1, string, 'Name of the volume within its StorageOS namespace.'),
    volumeNamespace: opt(2, string, 'StorageOS namespace to look in; by default the one of the pod.'),
    fsType: opt(3, string, 'File system to mount; ext4 when left out.'),
    readOnly: opt(4, boolean, 'Mount the volume without allowing writes; false by default.'),
    secretRef: ptr(5, localObjectReference, 'Secret with the credentials for StorageOS.'),
  },
)

export const csiVolumeSource = object(
  'io.k8s.api.core.v1.CSIVolumeSource',
  'Storage that a CSI driver makes for this pod alone, without a claim.',
  {
    driver: req(1, string, 'CSI driver that provides the volume, by its registered name.'),
    readOnly: ptr(2, boolean, 'Mount the volume without allowing writes; false by default.'),
    fsType: ptr(3, string, 'File system to mount; the driver decides when left out.'),
    volumeAttributes: opt(4, map(string), 'Settings for the driver, in its own terms.'),
    nodePublishSecretRef: ptr(
      5,
      localObjectReference,
      'Secret given to the driver when the volume is published on the node.',
    ),
  },
)

export const persistentVolumeClaimTemplate = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimTemplate',
  'Model for a claim that is made for the pod.',
  {
    metadata: opt(1, objectMeta, 'Labels and annotations to copy to the claim; nothing else is allowed.'),
    spec: req(2, persistentVolumeClaimSpec, 'What the claim asks for, copied without change.'),
  },
)

export const ephemeralVolumeSource = object(
  'io.k8s.api.core.v1.EphemeralVolumeSource',
  'A claim made for this pod and deleted together with it.',
  {
    volumeClaimTemplate: ptr(
      1,
      persistentVolumeClaimTemplate,
      'Model of the claim, which is named after the pod and volume joined by a hyphen.',
    ),
  },
)

export const imageVolumeSource = object(
  'io.k8s.api.core.v1.ImageVolumeSource',
  'The contents of a container image or artifact, mounted read-only.',
  {
    reference: opt(1, string, 'Image or artifact to mount, named as for a container.'),
    pullPolicy: opt(
      2,
      oneOf('Always', 'Never', 'IfNotPresent'),
      'When to fetch it; Always for the latest tag, otherwise IfNotPresent.',
    ),
  },
)

export const volumeSource = object(
  'io.k8s.api.core.v1.VolumeSource',
  'Where a volume gets its contents; choose exactly one, or none for an emptyDir.',
  {
    hostPath: ptr(1, hostPathVolumeSource, 'A file or directory of the node itself; powerful, so best avoided.'),
    emptyDir: ptr(2, emptyDirVolumeSource, 'Scratch space that lives as long as the pod.'),
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
    secret: ptr(6, secretVolumeSource, 'Files made from the entries of a Secret.'),
    nfs: ptr(7, nfsVolumeSource, 'A directory exported by an NFS server.'),
    iscsi: ptr(8, iscsiVolumeSource, 'A disk reached over iSCSI.'),
    glusterfs: ptr(9, glusterfsVolumeSource, 'A GlusterFS volume; deprecated and no longer mounted.'),
    persistentVolumeClaim: ptr(
      10,
      persistentVolumeClaimVolumeSource,
      'The persistent volume bound to a claim in the same namespace.',
    ),
    rbd: ptr(11, rbdVolumeSource, 'A Ceph block device image; deprecated and no longer mounted.'),
    flexVolume: ptr(
      12,
      flexVolumeSource,
      'A volume handled by an executable on the node; deprecated in favour of CSI.',
    ),
    cinder: ptr(13, cinderVolumeSource, 'An OpenStack Cinder volume; deprecated in favour of its CSI driver.'),
    cephfs: ptr(14, cephFSVolumeSource, 'A directory of a Ceph file system; deprecated and no longer mounted.'),
    flocker: ptr(15, flockerVolumeSource, 'A Flocker dataset; deprecated and no longer mounted.'),
    downwardAPI: ptr(16, downwardAPIVolumeSource, 'Files holding facts about the pod itself.'),
    fc: ptr(17, fcVolumeSource, 'A disk reached over Fibre Channel.'),
    azureFile: ptr(18, azureFileVolumeSource, 'An Azure file share; deprecated in favour of its CSI driver.'),
    configMap: ptr(19, configMapVolumeSource, 'Files made from the entries of a ConfigMap.'),
    vsphereVolume: ptr(
      20,
      vsphereVirtualDiskVolumeSource,
      'A vSphere virtual disk; deprecated in favour of its CSI driver.',
    ),
    quobyte: ptr(21, quobyteVolumeSource, 'A Quobyte volume; deprecated and no longer mounted.'),
    azureDisk: ptr(22, azureDiskVolumeSource, 'An Azure data disk; deprecated in favour of its CSI driver.'),
    photonPersistentDisk: ptr(
      23,
      photonPersistentDiskVolumeSource,
      'A Photon Controller disk; deprecated and no longer mounted.',
    ),
    projected: ptr(26, projectedVolumeSource, 'Several sources of files shown together in one directory.'),
    portworxVolume: ptr(24, portworxVolumeSource, 'A Portworx volume; deprecated in favour of its CSI driver.'),
    scaleIO: ptr(25, scaleIOVolumeSource, 'A ScaleIO volume; deprecated and no longer mounted.'),
    storageos: ptr(27, storageOSVolumeSource, 'A StorageOS volume; deprecated and no longer mounted.'),
    csi: ptr(28, csiVolumeSource, 'Storage that a CSI driver makes for this pod alone.'),
    ephemeral: ptr(29, ephemeralVolumeSource, 'A claim made for this pod and deleted together with it.'),
    image: ptr(30, imageVolumeSource, 'Contents of a container image or artifact, mounted read-only.'),
  },
)

export const volume = object('io.k8s.api.core.v1.Volume', 'Storage that containers of a pod can mount.', {
  name: req(1, string, 'How containers refer to the volume; a DNS label, unique in the pod.'),
  ...within(2, volumeSource.fields),
})

export type Volume = Infer<typeof volume>
