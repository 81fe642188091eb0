// The schema of CSIDriver. The rules are in csi-driver.ts.
import { boolean, type Infer, int64, list, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const tokenRequest = object(
  'io.k8s.api.storage.v1.TokenRequest',
  'A service account token that a driver needs for the pods that use its volumes.',
  {
    audience: req(1, string, 'Audience of the token; empty for the audience of the API server.'),
    expirationSeconds: ptr(2, int64, 'How long the token is valid, 600 seconds or more.'),
  },
)

export const csiDriverSpec = object(
  'io.k8s.api.storage.v1.CSIDriverSpec',
  'Capabilities and requirements of a driver.',
  {
    attachRequired: ptr(1, boolean, 'Whether volumes must be attached to a node before they are mounted; immutable.', {
      default: true,
    }),
    podInfoOnMount: ptr(2, boolean, 'Whether NodePublishVolume receives the name, namespace and uid of the pod.', {
      default: false,
    }),
    volumeLifecycleModes: opt(
      3,
      list(string),
      'Volume lifecycles that the driver supports: Persistent, Ephemeral or both; immutable.',
      { default: ['Persistent'], list: 'set' },
    ),
    storageCapacity: ptr(4, boolean, 'Whether the scheduler considers the CSIStorageCapacity objects of the driver.', {
      default: false,
    }),
    fsGroupPolicy: ptr(
      5,
      string,
      'When the ownership of a volume is changed to the fsGroup of the pod: ReadWriteOnceWithFSType, File or None.',
      { default: 'ReadWriteOnceWithFSType' },
    ),
    tokenRequests: opt(6, list(tokenRequest), 'Service account tokens of the pod that NodePublishVolume receives.'),
    requiresRepublish: ptr(
      7,
      boolean,
      'Whether NodePublishVolume is called periodically for mounted volumes, to refresh tokens.',
      { default: false },
    ),
    seLinuxMount: ptr(8, boolean, 'Whether volumes can be mounted with an SELinux label.', { default: false }),
    nodeAllocatableUpdatePeriodSeconds: ptr(
      9,
      int64,
      'Seconds between updates of the volume limit of a node, at least 10; unset means no updates.',
    ),
    serviceAccountTokenInSecrets: ptr(
      10,
      boolean,
      'Whether tokens are passed in the secrets instead of the volume context.',
    ),
    preventPodSchedulingIfMissing: ptr(
      11,
      boolean,
      'Whether pods that use the driver are kept off nodes where it is not registered.',
      { default: false },
    ),
  },
)

export type CSIDriverSpec = Infer<typeof csiDriverSpec>

export const csiDriver = object('io.k8s.api.storage.v1.CSIDriver', 'A CSI driver that is installed in the cluster.', {
  metadata: req(
    1,
    objectMeta,
    'Standard object metadata; the name is the one that the driver reports in GetPluginInfo.',
  ),
  spec: req(2, csiDriverSpec, 'Capabilities and requirements of the driver.'),
})

export type CSIDriver = Infer<typeof csiDriver>
