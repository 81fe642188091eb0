// PersistentVolumeClaim: what a user asks for, and what was given.
// allocatedResources in the spec and three of its status words are ours; the rest is as every client knows it.
import { type Infer, list, map, object, oneOf, opt, ptr, quantity, req, string, time } from '../../schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'
import { typedLocalObjectReference, typedObjectReference } from '../shared/references-schema.ts'

export const volumeResourceRequirements = object(
  'io.k8s.api.core.v1.VolumeResourceRequirements',
  'How much storage, and how fast, a claim needs at least and may have at most.',
  {
    limits: opt(1, map(quantity), 'The most the claim may be given, by resource: storage, iops, throughput.'),
    requests: opt(
      2,
      map(quantity),
      'The least the claim needs, by resource: storage, iops, throughput (bytes/s; below 1Mi counts MiB/s).',
    ),
  },
)

export const persistentVolumeClaimSpec = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimSpec',
  'What the user wants of a volume.',
  {
    accessModes: opt(
      1,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Ways in which the volume must be mountable; ReadWriteOncePod stands alone.',
    ),
    selector: ptr(4, labelSelector, 'Labels that an existing volume must have to be bound to this claim.'),
    resources: opt(
      2,
      volumeResourceRequirements,
      'Size of the volume, and its iops and throughput; may change once the claim is bound.',
    ),
    volumeName: opt(3, string, 'The volume this claim is bound to, or must be bound to.'),
    storageClassName: ptr(
      5,
      string,
      'Class that provides the volume; unset takes the default class, empty takes existing volumes only.',
    ),
    volumeMode: ptr(
      6,
      oneOf('Block', 'Filesystem'),
      'Filesystem to mount the volume as a directory, Block to get the raw device.',
      { default: 'Filesystem' },
    ),
    dataSource: ptr(
      7,
      typedLocalObjectReference,
      'Claim or snapshot in the same namespace that the new volume is filled from.',
    ),
    dataSourceRef: ptr(
      8,
      typedObjectReference,
      'Object of any kind that the new volume is filled from; mirrors dataSource where both can say it.',
    ),
    volumeAttributesClassName: ptr(
      9,
      string,
      'Class of changeable attributes the volume should have; may change once the claim is bound.',
    ),
    allocatedResources: opt(
      0,
      map(quantity),
      'Largest storage size the claim ever asked for, and the iops and throughput its volume keeps without being asked any more; charged to quota, kept by the server, not writable.',
    ),
  },
)

export type PersistentVolumeClaimSpec = Infer<typeof persistentVolumeClaimSpec>

export const persistentVolumeClaimCondition = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimCondition',
  'Something that is going on with a claim right now, such as a resize.',
  {
    type: req(1, string, 'What the condition is about, such as Resizing or ModifyVolumeError.'),
    status: req(2, string, 'Whether it holds: True, False or Unknown.'),
    lastProbeTime: opt(3, time, 'When the condition was last looked at.'),
    lastTransitionTime: opt(4, time, 'When the status of the condition last changed.'),
    reason: opt(5, string, 'One word for programs that says why the condition holds.'),
    message: opt(6, string, 'A sentence for people with the details.'),
  },
)

export type PersistentVolumeClaimCondition = Infer<typeof persistentVolumeClaimCondition>

export const modifyVolumeStatus = object(
  'io.k8s.api.core.v1.ModifyVolumeStatus',
  'How far a change of the attributes class has come.',
  {
    targetVolumeAttributesClassName: opt(1, string, 'Attributes class that the volume is being changed to.'),
    status: req(
      2,
      oneOf('Pending', 'InProgress', 'Infeasible'),
      'Pending cannot start yet, InProgress is being tried, Infeasible was refused by the driver.',
    ),
  },
)

export const volumeHealthCondition = object(
  'io.k8s.api.core.v1.VolumeHealthCondition',
  'One thing that is wrong with a volume.',
  {
    status: req(1, oneOf('Inaccessible', 'DataLoss', 'Degraded'), 'How bad it is: Inaccessible, DataLoss or Degraded.'),
    reason: req(2, string, 'One word for programs that says what is wrong.'),
    message: opt(3, string, 'A sentence for people with the details.'),
  },
)

export const volumeHealthStatus = object(
  'io.k8s.api.core.v1.VolumeHealthStatus',
  'What is known about the health of the volume behind a claim.',
  {
    healthConditions: opt(
      1,
      list(volumeHealthCondition),
      'Everything that is wrong with the volume; empty when it is healthy.',
      {
        merge: 'status',
        list: 'map',
        keys: ['status', 'reason'],
      },
    ),
    lastTransitionTime: opt(2, time, 'When the health last changed.'),
  },
)

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

export const persistentVolumeClaimStatus = object(
  'io.k8s.api.core.v1.PersistentVolumeClaimStatus',
  'What the claim has been given so far; written by controllers.',
  {
    phase: opt(
      1,
      oneOf('Pending', 'Bound', 'Lost'),
      'Pending until a volume is bound, then Bound; Lost when the bound volume is gone.',
      { default: 'Pending' },
    ),
    accessModes: opt(
      2,
      list(oneOf('ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod')),
      'Ways in which the bound volume can be mounted.',
    ),
    capacity: opt(3, map(quantity), 'What the bound volume really provides, by resource: storage, iops, throughput.'),
    conditions: opt(
      4,
      list(persistentVolumeClaimCondition),
      'What is going on with the claim right now, such as a resize or a failed change.',
      { merge: 'type', list: 'map', keys: ['type'] },
    ),
    allocatedResources: opt(
      5,
      map(quantity),
      'What was last asked of the driver, by resource; may exceed capacity while a change is running.',
    ),
    allocatedResourceStatuses: opt(
      7,
      map(oneOf(...ALLOCATED_RESOURCE_STATUSES)),
      'How far the change of each resource has come; no entry means that nothing is running.',
    ),
    currentVolumeAttributesClassName: ptr(
      8,
      string,
      'Attributes class the volume has now; unset when none is in effect.',
    ),
    modifyVolumeStatus: ptr(
      9,
      modifyVolumeStatus,
      'How far a change of the attributes class has come; unset when none is being tried.',
    ),
    healthStatus: ptr(
      10,
      volumeHealthStatus,
      'What is known about the health of the volume; unset when nothing was reported.',
    ),
  },
)

export type PersistentVolumeClaimStatus = Infer<typeof persistentVolumeClaimStatus>

export const persistentVolumeClaim = object(
  'io.k8s.api.core.v1.PersistentVolumeClaim',
  "A user's request for storage, and the volume it was given.",
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels and owners of the claim.'),
    spec: opt(2, persistentVolumeClaimSpec, 'What the user wants of the volume.'),
    status: opt(3, persistentVolumeClaimStatus, 'What the claim has been given so far; written by controllers.'),
  },
)

export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaim>
