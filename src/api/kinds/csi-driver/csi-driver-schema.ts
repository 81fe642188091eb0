// The fields of CSIDriver. Its rules are in csi-driver.ts.
import { boolean, type Infer, int64, list, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

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
