// Lists the fields that a CSI driver's controllers read, for kinds that have many objects in a cluster. A process that runs only
// these controllers (run-sidecar.ts) caches no other fields of these kinds.
//
//   Pod, as the server returns it   20 kB     Pod, as it is cached   { name, namespace, uid, resourceVersion, claims, phase }
import { isRecord } from '../api/decode.ts'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
import type { CacheReductions } from '../runtime/index.ts'
import { RETRY_ANNOTATION } from '../runtime/operations/retry-request.ts'

/** The fields to keep of an object, or of each item in a list. `true` keeps the whole value; a tree or a function prunes it. */
export interface FieldTree {
  readonly [field: string]: true | FieldTree | ((value: unknown) => unknown)
}

const IDENTITY = {
  name: true,
  namespace: true,
  uid: true,
  resourceVersion: true,
  annotations: keepRetryRequest,
} as const
const METADATA = {
  ...IDENTITY,
  deletionTimestamp: true,
  finalizers: true,
  labels: true,
  annotations: removeLastApplied,
} as const

export const KEPT_FIELDS: ReadonlyMap<Kind, FieldTree> = new Map<Kind, FieldTree>([
  [
    persistentVolumeClaimKind as Kind,
    {
      metadata: METADATA,
      spec: {
        accessModes: true,
        selector: true,
        resources: true,
        volumeName: true,
        storageClassName: true,
        volumeMode: true,
        dataSource: true,
        dataSourceRef: true,
        volumeAttributesClassName: true,
        allocatedResources: true,
      },
      status: {
        phase: true,
        accessModes: true,
        capacity: true,
        conditions: true,
        allocatedResources: true,
        allocatedResourceStatuses: true,
        currentVolumeAttributesClassName: true,
        modifyVolumeStatus: true,
      },
    },
  ],
  [
    persistentVolumeKind as Kind,
    {
      metadata: METADATA,
      spec: {
        capacity: true,
        accessModes: true,
        csi: true,
        claimRef: { namespace: true, name: true, uid: true },
        persistentVolumeReclaimPolicy: true,
        storageClassName: true,
        mountOptions: true,
        volumeMode: true,
        nodeAffinity: true,
        volumeAttributesClassName: true,
      },
      status: { phase: true },
    },
  ],
  [podKind as Kind, { metadata: IDENTITY, spec: { volumes: keepClaimVolumes }, status: { phase: true } }],
  [
    nodeKind as Kind,
    {
      metadata: { ...IDENTITY, labels: true },
      spec: { taints: { key: true, value: true } },
      status: { conditions: { type: true, status: true } },
    },
  ],
  [csiNodeKind as Kind, { metadata: IDENTITY, spec: { drivers: { name: true, nodeID: true, topologyKeys: true } } }],
  [
    volumeAttachmentKind as Kind,
    {
      metadata: { ...IDENTITY, deletionTimestamp: true, finalizers: true, annotations: removeLastApplied },
      spec: true,
      status: { attached: true, attachError: true, detachError: true },
    },
  ],
])

/** The functions that prune cached objects, by kind. */
export const PRUNED_CACHES: CacheReductions = new Map(
  [...KEPT_FIELDS].map(([kind, fields]) => [
    kind,
    (object: Readonly<Stored>) => keepFields(object, fields) as Readonly<Stored<KubeObject>>,
  ]),
)

/** Returns a frozen copy with the kept fields. Their order is that of the tree, so that all copies have the same shape. */
function keepFields(value: unknown, fields: FieldTree): unknown {
  if (Array.isArray(value)) return Object.freeze(value.map((item) => keepFields(item, fields)))
  if (!isRecord(value)) return value
  const copy: Record<string, unknown> = {}
  for (const [name, reduction] of Object.entries(fields)) {
    const field = value[name]
    if (field === undefined) continue
    if (reduction === true) copy[name] = field
    else copy[name] = typeof reduction === 'function' ? reduction(field) : keepFields(field, reduction)
  }
  return Object.freeze(copy)
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Keeps the retry annotation, which controller.ts reads on every object. */
function keepRetryRequest(annotations: unknown): unknown {
  const requestTime = isRecord(annotations) ? annotations[RETRY_ANNOTATION] : undefined
  return requestTime === undefined ? undefined : Object.freeze({ [RETRY_ANNOTATION]: requestTime })
}

/** Keeps all other annotations, because the name of a class's secret can refer to annotations of the claim. */
function removeLastApplied(annotations: unknown): unknown {
  if (!isRecord(annotations) || annotations[LAST_APPLIED] === undefined) return annotations
  const { [LAST_APPLIED]: _, ...otherAnnotations } = annotations
  return Object.freeze(otherAnnotations)
}

/** Keeps the pod's claim volumes, with the fields that claims-of-pod.ts reads. */
function keepClaimVolumes(volumes: unknown): unknown {
  const claims = (volumes as readonly Readonly<Record<string, unknown>>[]).filter(
    ({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim || ephemeral,
  )
  return keepFields(claims, { name: true, persistentVolumeClaim: { claimName: true }, ephemeral: {} })
}
