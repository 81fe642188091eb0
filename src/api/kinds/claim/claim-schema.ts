// The schema of PersistentVolumeClaim. spec.allocatedResources and the three ControllerModifyVolume* statuses are
// extensions of the Kubernetes API.
import { type Infer, list, map, object, oneOf, opt, ptr, quantity, req, string, time } from '../../schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'
import { typedLocalObjectReference, typedObjectReference } from '../shared/references-schema.ts'

const volumeResourceRequirements = object(
  'io.k8s.api.core.v1.VolumeResourceRequirements',
  'Minimum and maximum storage, iops and throughput of a claim.',
  {
    limits: opt(1, map(quantity), 'Maximum amounts by resource: storage, iops, throughput.'),
    requests: opt(
      2,
      map(quantity),
      'Minimum amounts by resource: storage, iops, throughput (in bytes/s; a value below 1Mi is in MiB/s).',
    ),
  },
)

export const persistentVolumeClaimSpec = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimSpec',
  'The requested volume.',
  {
    accessModes: opt(
      1,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Required access modes; ReadWriteOncePod excludes all others.',
    ),
    selector: ptr(4, labelSelector, 'Labels that an existing volume must have to be bound to this claim.'),
    resources: opt(
      2,
      volumeResourceRequirements,
      'Size, iops and throughput of the volume; mutable once the claim is bound, except limits.storage.',
    ),
    volumeName: opt(3, string, 'Name of the volume that this claim is bound to or must be bound to.'),
    storageClassName: ptr(
      5,
      string,
      'StorageClass of the volume; unset means the default class, empty means existing volumes without a class.',
    ),
    volumeMode: ptr(
      6,
      oneOf('Block', 'Filesystem'),
      'Filesystem mounts the volume as a directory; Block provides the raw device.',
      { default: 'Filesystem' },
    ),
    dataSource: ptr(
      7,
      typedLocalObjectReference,
      'Claim or snapshot in the same namespace from which the new volume is populated.',
    ),
    dataSourceRef: ptr(
      8,
      typedObjectReference,
      'Object of any kind from which the new volume is populated; mirrors dataSource if both can express it.',
    ),
    volumeAttributesClassName: ptr(9, string, 'VolumeAttributesClass of the volume; mutable once the claim is bound.'),
    allocatedResources: opt(
      0,
      map(quantity),
      'Storage size charged to quota: the largest that the claim has requested, unless the server charges the current size. Set by the server; read-only.',
    ),
  },
)

export type PersistentVolumeClaimSpec = Infer<typeof persistentVolumeClaimSpec>

const persistentVolumeClaimCondition = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimCondition',
  'A condition of a claim, such as a resize in progress.',
  {
    type: req(1, string, 'Type of the condition, such as Resizing or ModifyVolumeError.'),
    status: req(2, string, 'Status of the condition: True, False or Unknown.'),
    lastProbeTime: opt(3, time, 'When the condition was last checked.'),
    lastTransitionTime: opt(4, time, 'When the status of the condition last changed.'),
    reason: opt(5, string, 'Machine-readable reason for the status, in CamelCase.'),
    message: opt(6, string, 'Human-readable details.'),
  },
)

export type PersistentVolumeClaimCondition = Infer<typeof persistentVolumeClaimCondition>

const modifyVolumeStatus = object(
  'io.k8s.api.core.v1.ModifyVolumeStatus',
  'Progress of a change to the attributes class.',
  {
    targetVolumeAttributesClassName: opt(1, string, 'Attributes class to which the volume is being changed.'),
    status: req(
      2,
      oneOf('Pending', 'InProgress', 'Infeasible'),
      'Pending: cannot start yet. InProgress: being applied. Infeasible: rejected by the driver.',
    ),
  },
)

export const volumeHealthCondition = object('io.k8s.api.core.v1.VolumeHealthCondition', 'A problem with a volume.', {
  status: req(1, oneOf('Inaccessible', 'DataLoss', 'Degraded'), 'Severity: Inaccessible, DataLoss or Degraded.'),
  reason: req(2, string, 'Machine-readable reason for the problem, in CamelCase.'),
  message: opt(3, string, 'Human-readable details.'),
})

const volumeHealthStatus = object('io.k8s.api.core.v1.VolumeHealthStatus', 'Health of the volume of a claim.', {
  healthConditions: opt(1, list(volumeHealthCondition), 'Problems with the volume; empty if it is healthy.', {
    merge: 'status',
    list: 'map',
    keys: ['status', 'reason'],
  }),
  lastTransitionTime: opt(2, time, 'When the health last changed.'),
})

export const ALLOCATED_RESOURCE_STATUSES = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'ControllerModifyVolumePending',
  'ControllerModifyVolumeInProgress',
  'ControllerModifyVolumeFailed',
] as const

const persistentVolumeClaimStatus = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimStatus',
  'Current state of the claim; written by controllers.',
  {
    phase: opt(
      1,
      oneOf('Pending', 'Bound', 'Lost'),
      'Pending until a volume is bound, then Bound; Lost if the bound volume no longer exists.',
      { default: 'Pending' },
    ),
    accessModes: opt(
      2,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Access modes of the bound volume.',
    ),
    capacity: opt(3, map(quantity), 'Actual amounts of the bound volume by resource: storage, iops, throughput.'),
    conditions: opt(
      4,
      list(persistentVolumeClaimCondition),
      'Conditions of the claim, such as a resize in progress or a failed modification.',
      { merge: 'type', list: 'map', keys: ['type'] },
    ),
    allocatedResources: opt(
      5,
      map(quantity),
      'Amounts last requested from the driver, by resource; may exceed capacity while a change is in progress.',
    ),
    allocatedResourceStatuses: opt(
      7,
      map(oneOf(...ALLOCATED_RESOURCE_STATUSES)),
      'Progress of the change to each resource; no entry means that none is in progress.',
    ),
    currentVolumeAttributesClassName: ptr(8, string, 'Current attributes class of the volume; unset if it has none.'),
    modifyVolumeStatus: ptr(
      9,
      modifyVolumeStatus,
      'Progress of a change to the attributes class; unset if none is in progress.',
    ),
    healthStatus: ptr(10, volumeHealthStatus, 'Health of the volume; unset if none was reported.'),
  },
)

export type PersistentVolumeClaimStatus = Infer<typeof persistentVolumeClaimStatus>

export const persistentVolumeClaim = object(
  'io.k8s.api.core.v1.PersistentVolumeClaim',
  'A request for storage by a user, and the volume bound to it.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, persistentVolumeClaimSpec, 'The requested volume.'),
    status: opt(3, persistentVolumeClaimStatus, 'Current state of the claim; written by controllers.'),
  },
)

export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaim>
