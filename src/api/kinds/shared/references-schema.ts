// The schemas of object references, node selectors and topology selectors, which several kinds use.
import { type Infer, list, object, oneOf, opt, ptr, req, string } from '../../schema.ts'

export const objectReference = object(
  'io.k8s.api.core.v1.ObjectReference',
  'Refers to an object of any kind in any namespace.',
  {
    kind: opt(1, string, 'Kind of the object, such as PersistentVolumeClaim.'),
    namespace: opt(2, string, 'Namespace of the object; empty for kinds without one.'),
    name: opt(3, string, 'Name of the object.'),
    uid: opt(
      4,
      string,
      'UID of the object; if set, the reference does not match an object recreated with the same name.',
    ),
    apiVersion: opt(5, string, 'API group and version of the object.'),
    resourceVersion: opt(6, string, 'Version of the object that the reference was created for, if any.'),
    fieldPath: opt(7, string, 'Part of the object, such as one container of a pod.'),
  },
  { atomic: true },
)

export const localObjectReference = object(
  'io.k8s.api.core.v1.LocalObjectReference',
  'Refers to an object in the same namespace by name.',
  {
    name: opt(1, string, 'Name of the object.'),
  },
  { atomic: true },
)

export const secretReference = object(
  'io.k8s.api.core.v1.SecretReference',
  'Refers to a Secret in any namespace.',
  {
    name: opt(1, string, 'Name of the secret, unique within its namespace.'),
    namespace: opt(2, string, 'Namespace of the secret.'),
  },
  { atomic: true },
)

export type SecretReference = Infer<typeof secretReference>

export const typedLocalObjectReference = object(
  'io.k8s.api.core.v1.TypedLocalObjectReference',
  'Refers to an object of a given kind in the same namespace.',
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
  'Refers to an object of a given kind, possibly in another namespace.',
  {
    apiGroup: ptr(1, string, 'API group of the object; empty for the core group.'),
    kind: req(2, string, 'Kind of the object, such as VolumeSnapshot.'),
    name: req(3, string, 'Name of the object.'),
    namespace: ptr(4, string, 'Namespace of the object; empty for the namespace of the referring object.'),
  },
)

export type TypedObjectReference = Infer<typeof typedObjectReference>

export const nodeSelectorRequirement = object(
  'io.k8s.api.core.v1.NodeSelectorRequirement',
  'A requirement on a node: label or field, operator and values.',
  {
    key: req(1, string, 'Label or field of the node.'),
    operator: req(
      2,
      oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'),
      'Operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.',
    ),
    values: opt(3, list(string), 'Values; none for Exists and DoesNotExist, one integer for Gt and Lt.'),
  },
)

export type NodeSelectorRequirement = Infer<typeof nodeSelectorRequirement>

export const nodeSelectorTerm = object(
  'io.k8s.api.core.v1.NodeSelectorTerm',
  'Requirements that a node must all meet; a term without requirements matches no node.',
  {
    matchExpressions: opt(1, list(nodeSelectorRequirement), 'Requirements on labels of the node.'),
    matchFields: opt(
      2,
      list(nodeSelectorRequirement),
      'Requirements on fields of the node; only metadata.name is supported.',
    ),
  },
  { atomic: true },
)

export type NodeSelectorTerm = Infer<typeof nodeSelectorTerm>

export const nodeSelector = object(
  'io.k8s.api.core.v1.NodeSelector',
  'Selects nodes that match at least one of its terms.',
  {
    nodeSelectorTerms: req(1, list(nodeSelectorTerm), 'Terms, at least one; they are ORed.'),
  },
  { atomic: true },
)

export type NodeSelector = Infer<typeof nodeSelector>

const topologySelectorLabelRequirement = object(
  'io.k8s.api.core.v1.TopologySelectorLabelRequirement',
  'A requirement on a topology label.',
  {
    key: req(1, string, 'Key of the topology label, such as topology.kubernetes.io/zone.'),
    values: req(2, list(string), 'Allowed values of the label.'),
  },
)

export type TopologySelectorLabelRequirement = Infer<typeof topologySelectorLabelRequirement>

export const topologySelectorTerm = object(
  'io.k8s.api.core.v1.TopologySelectorTerm',
  'A part of the cluster, described by requirements on topology labels that must all be met.',
  {
    matchLabelExpressions: opt(
      1,
      list(topologySelectorLabelRequirement),
      'Requirements on topology labels, each key at most once.',
    ),
  },
  { atomic: true },
)

export type TopologySelectorTerm = Infer<typeof topologySelectorTerm>
