// The schema of StatefulSet. The rules are in stateful-set.ts and stateful-set-rules.ts, the defaults in
// stateful-set-defaults.ts.
import {
  type Infer,
  int32,
  int64,
  intOrString,
  list,
  object,
  oneOf,
  opt,
  ptr,
  req,
  string,
  time,
} from '../../schema.ts'
import { persistentVolumeClaim } from '../claim/claim-schema.ts'
import { podTemplateSpec } from '../pod/pod-template-schema.ts'
import { labelSelector, objectMeta } from '../shared/meta-schema.ts'

const rollingUpdateStatefulSetStrategy = object(
  'io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy',
  'Parameters of a rolling update.',
  {
    partition: ptr(1, int32, 'Pods with a lower ordinal are not updated; 0 by default.'),
    maxUnavailable: ptr(
      2,
      intOrString,
      'How many pods, as a number or a percentage of replicas, may be unavailable during the update; 1 by default.',
    ),
  },
)

const statefulSetUpdateStrategy = object(
  'io.k8s.api.apps.v1.StatefulSetUpdateStrategy',
  'How pods are replaced after a change to the template.',
  {
    type: opt(
      1,
      oneOf('OnDelete', 'RollingUpdate'),
      'RollingUpdate deletes pods to update them; OnDelete waits until the user deletes them.',
    ),
    rollingUpdate: ptr(2, rollingUpdateStatefulSetStrategy, 'Parameters of type RollingUpdate.'),
  },
)

const statefulSetPersistentVolumeClaimRetentionPolicy = object(
  'io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy',
  'What happens to the claims of a set.',
  {
    whenDeleted: opt(1, oneOf('Retain', 'Delete'), 'Whether claims are deleted with the set.'),
    whenScaled: opt(2, oneOf('Retain', 'Delete'), 'Whether the claims of a pod are deleted when it is scaled down.'),
  },
)

const statefulSetOrdinals = object('io.k8s.api.apps.v1.StatefulSetOrdinals', 'The numbering of the pods.', {
  start: req(1, int32, 'Ordinal of the first pod.'),
})

/** A claim in the spec of a set, which may repeat apiVersion and kind. The protobuf message does not have them. */
const volumeClaimTemplate = object('io.k8s.api.core.v1.PersistentVolumeClaim', persistentVolumeClaim.doc, {
  apiVersion: opt(0, string, 'Group and version of the schema of the object.'),
  kind: opt(0, string, 'Kind of the object. Cannot be changed.'),
  ...persistentVolumeClaim.fields,
})

export const statefulSetSpec = object('io.k8s.api.apps.v1.StatefulSetSpec', 'Desired state of a set.', {
  replicas: ptr(1, int32, 'Number of pods; 1 by default.'),
  selector: ptr(2, labelSelector, 'Selects the pods of the set; must match the labels of the template. Immutable.'),
  template: req(3, podTemplateSpec, 'Template of the pods, which are named <set>-<ordinal>.'),
  volumeClaimTemplates: opt(
    4,
    list(volumeClaimTemplate),
    'Templates of the claims of each pod, which are named <template>-<set>-<ordinal>. Immutable.',
  ),
  serviceName: opt(5, string, 'Service that governs the host names of the pods. Immutable.'),
  podManagementPolicy: opt(
    6,
    oneOf('OrderedReady', 'Parallel'),
    'Whether pods are created and deleted one after the other or all at once; OrderedReady by default. Immutable.',
  ),
  updateStrategy: opt(7, statefulSetUpdateStrategy, 'How pods are replaced after a change to the template.'),
  revisionHistoryLimit: ptr(8, int32, 'Number of unused revisions to keep; 10 by default.'),
  minReadySeconds: opt(9, int32, 'Seconds for which a pod must be ready before it is available.'),
  persistentVolumeClaimRetentionPolicy: ptr(
    10,
    statefulSetPersistentVolumeClaimRetentionPolicy,
    'What happens to the claims of the set; they are retained by default.',
  ),
  ordinals: ptr(11, statefulSetOrdinals, 'Numbering of the pods; from 0 by default.'),
})

export type StatefulSetSpec = Infer<typeof statefulSetSpec>

const statefulSetCondition = object('io.k8s.api.apps.v1.StatefulSetCondition', 'A condition of a set.', {
  type: req(1, string, 'Type of the condition.'),
  status: req(2, string, 'True, False or Unknown.'),
  lastTransitionTime: opt(3, time, 'When the status last changed.'),
  reason: opt(4, string, 'Machine-readable reason of the last change.'),
  message: opt(5, string, 'Human-readable details of the last change.'),
})

const statefulSetStatus = object(
  'io.k8s.api.apps.v1.StatefulSetStatus',
  'Current state of a set; written by its controller.',
  {
    observedGeneration: opt(1, int64, 'Generation of the set that this status reflects.'),
    replicas: req(2, int32, 'Number of pods.'),
    readyReplicas: opt(3, int32, 'Number of ready pods.'),
    currentReplicas: opt(4, int32, 'Number of pods of currentRevision.'),
    updatedReplicas: opt(5, int32, 'Number of pods of updateRevision.'),
    currentRevision: opt(6, string, 'Revision of the pods that are not updated yet.'),
    updateRevision: opt(7, string, 'Revision of the current template.'),
    collisionCount: ptr(9, int32, 'Number of collisions of revision names, which is part of the hash of new names.'),
    conditions: opt(10, list(statefulSetCondition), 'Conditions of the set.', {
      merge: 'type',
      list: 'map',
      keys: ['type'],
    }),
    availableReplicas: ptr(11, int32, 'Number of pods that have been ready for minReadySeconds.'),
  },
)

export type StatefulSetStatus = Infer<typeof statefulSetStatus>

export const statefulSet = object(
  'io.k8s.api.apps.v1.StatefulSet',
  'A set of pods with stable names and with claims of their own.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, statefulSetSpec, 'Desired state of the set.'),
    status: opt(3, statefulSetStatus, 'Current state of the set; written by its controller.'),
  },
)

export type StatefulSet = Infer<typeof statefulSet>
