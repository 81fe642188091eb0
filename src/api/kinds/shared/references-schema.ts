// Ways in which one object points at another, or at nodes and topologies it wants.
import { type Infer, list, object, oneOf, opt, ptr, req, string } from '../../schema.ts'

export const objectReference = object(
  'io.k8s.api.core.v1.ObjectReference',
  'Points at an object of any kind, in any namespace.',
  {
    kind: opt(1, string, 'Kind of the object, such as PersistentVolumeClaim.'),
    namespace: opt(2, string, 'Namespace of the object; empty for kinds without one.'),
    name: opt(3, string, 'Name of the object.'),
    uid: opt(4, string, 'UID of the object; when given, a namesake created later is not meant.'),
    apiVersion: opt(5, string, 'API group and version of the object.'),
    resourceVersion: opt(6, string, 'The version of the object that is meant, where that matters.'),
    fieldPath: opt(7, string, 'Part of the object that is meant, such as one container of a pod.'),
  },
  { atomic: true },
)

export type ObjectReference = Infer<typeof objectReference>

export const localObjectReference = object(
  'io.k8s.api.core.v1.LocalObjectReference',
  'Points by name at an object in the same namespace.',
  {
    name: opt(1, string, 'Name of the object.'),
  },
  { atomic: true },
)

export type LocalObjectReference = Infer<typeof localObjectReference>

export const secretReference = object(
  'io.k8s.api.core.v1.SecretReference',
  'Points at a Secret in any namespace.',
  {
    name: opt(1, string, 'Name of the secret, unique within its namespace.'),
    namespace: opt(2, string, 'Namespace in which the secret lives.'),
  },
  { atomic: true },
)

export type SecretReference = Infer<typeof secretReference>

export const typedLocalObjectReference = object(
  'io.k8s.api.core.v1.TypedLocalObjectReference',
  'Points at an object of a given kind in the same namespace.',
  {
    apiGroup: ptr(1, string, 'API group of the object; empty for the core group.'),
    kind: req(2, string, 'Kind of the object, such as VolumeSnapshot.'),
    name: req(3, string, 'Name of the object.'),
  },
  { atomic: true },
)

export type TypedLocalObjectReference = Infer<typeof typedLocalObjectReference>

export const typedObjectReference = object(
  'io.k8s.api.core.v1.TypedObjectReference',
  'Points at an object of a given kind, possibly in another namespace.',
  {
    apiGroup: ptr(1, string, 'API group of the object; empty for the core group.'),
    kind: req(2, string, 'Kind of the object, such as VolumeSnapshot.'),
    name: req(3, string, 'Name of the object.'),
    namespace: ptr(4, string, "Namespace of the object; empty for the referrer's own namespace."),
  },
)

export type TypedObjectReference = Infer<typeof typedObjectReference>

export const nodeSelectorRequirement = object(
  'io.k8s.api.core.v1.NodeSelectorRequirement',
  'One condition on a node: a label or field, an operator and the values to compare with.',
  {
    key: req(1, string, 'Label or field of the node that the condition is about.'),
    operator: req(
      2,
      oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'),
      'How it is compared: In, NotIn, Exists, DoesNotExist, Gt or Lt.',
    ),
    values: opt(
      3,
      list(string),
      'Values to compare with; none for Exists and DoesNotExist, one whole number for Gt and Lt.',
    ),
  },
)

export type NodeSelectorRequirement = Infer<typeof nodeSelectorRequirement>

export const nodeSelectorTerm = object(
  'io.k8s.api.core.v1.NodeSelectorTerm',
  'Conditions that a node must meet together; a term without any matches no node.',
  {
    matchExpressions: opt(1, list(nodeSelectorRequirement), 'Conditions on the labels of the node.'),
    matchFields: opt(
      2,
      list(nodeSelectorRequirement),
      'Conditions on the fields of the node; only metadata.name is known.',
    ),
  },
  { atomic: true },
)

export type NodeSelectorTerm = Infer<typeof nodeSelectorTerm>

export const nodeSelector = object(
  'io.k8s.api.core.v1.NodeSelector',
  'Selects nodes: those that satisfy at least one of its terms.',
  {
    nodeSelectorTerms: req(
      1,
      list(nodeSelectorTerm),
      'Alternatives, at least one; a node needs to satisfy only one of them.',
    ),
  },
  { atomic: true },
)

export type NodeSelector = Infer<typeof nodeSelector>

export const topologySelectorLabelRequirement = object(
  'io.k8s.api.core.v1.TopologySelectorLabelRequirement',
  'Values that one topology label may have.',
  {
    key: req(1, string, 'Label key that describes the topology, such as topology.kubernetes.io/zone.'),
    values: req(2, list(string), 'Values allowed for the label; one of them must be the actual one.'),
  },
)

export type TopologySelectorLabelRequirement = Infer<typeof topologySelectorLabelRequirement>

export const topologySelectorTerm = object(
  'io.k8s.api.core.v1.TopologySelectorTerm',
  'A part of the cluster, described by topology labels that must all fit.',
  {
    matchLabelExpressions: opt(
      1,
      list(topologySelectorLabelRequirement),
      'Conditions on topology labels, each key at most once.',
    ),
  },
  { atomic: true },
)

export type TopologySelectorTerm = Infer<typeof topologySelectorTerm>
