// The schemas of ObjectMeta, which every object has, and LabelSelector, which several kinds use.
import { boolean, fieldsV1, type Infer, int64, list, map, object, opt, ptr, req, string, time } from '../../schema.ts'

const ownerReference = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference',
  'Refers to an owner of the object; the object is deleted after its last owner.',
  {
    apiVersion: req(5, string, 'API group and version of the owner, such as apps/v1.'),
    kind: req(1, string, 'Kind of the owner, such as StatefulSet.'),
    name: req(3, string, 'Name of the owner.'),
    uid: req(4, string, 'UID of the owner, which distinguishes it from a later object of the same name.'),
    controller: ptr(6, boolean, 'True for the owner that is the managing controller.'),
    blockOwnerDeletion: ptr(
      7,
      boolean,
      'Whether a foreground deletion of the owner waits for the deletion of this object.',
    ),
  },
  { atomic: true },
)

export type OwnerReference = Infer<typeof ownerReference>

const managedFieldsEntry = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry',
  'The fields of the object that one manager owns.',
  {
    manager: opt(1, string, 'Name of the client that set the fields.'),
    operation: opt(2, string, 'How the fields were set: Apply or Update.'),
    apiVersion: opt(3, string, 'API version of the field paths.'),
    time: ptr(4, time, 'When the manager last changed its set of fields.'),
    fieldsType: opt(6, string, 'Format of the field set; always FieldsV1.'),
    fieldsV1: ptr(7, fieldsV1, 'The fields, as a tree of names, list keys and values.'),
    subresource: opt(8, string, 'Subresource through which the fields were set; empty for the object itself.'),
  },
)

export type ManagedFieldsEntry = Infer<typeof managedFieldsEntry>

export const objectMeta = object('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta', 'Metadata that every object has.', {
  name: opt(1, string, 'Name of the object, unique for its kind within its namespace; immutable.'),
  generateName: opt(2, string, 'Prefix of a name that the server generates if no name is set.'),
  namespace: opt(3, string, 'Namespace of the object; empty for cluster-scoped objects.'),
  selfLink: opt(4, string, 'Deprecated: not set; accepted from older clients.'),
  uid: opt(5, string, 'Unique ID assigned by the server; unlike a name it is never reused.'),
  resourceVersion: opt(
    6,
    string,
    'Version of the stored object. An update that carries it fails if the object has changed since.',
  ),
  generation: opt(7, int64, 'Number of changes to the desired state, for kinds that count them.'),
  creationTimestamp: opt(8, time, 'When the server created the object.'),
  deletionTimestamp: ptr(
    9,
    time,
    'When the grace period of a requested deletion ends; the object is deleted once its finalizers are removed.',
  ),
  deletionGracePeriodSeconds: ptr(
    10,
    int64,
    'Grace period in seconds between the request for deletion and the deletion.',
  ),
  labels: opt(11, map(string), 'Keys and values for selecting and grouping objects.'),
  annotations: opt(12, map(string), 'Arbitrary keys and values; cannot be used in selectors.'),
  ownerReferences: opt(13, list(ownerReference), 'Owners of the object; it is deleted after all of them.', {
    merge: 'uid',
    list: 'map',
    keys: ['uid'],
  }),
  finalizers: opt(
    14,
    list(string),
    'Cleanup tasks that must finish before the object is deleted; the responsible controller removes each one.',
    { merge: '', list: 'set' },
  ),
  managedFields: ptr(17, list(managedFieldsEntry), 'Owners of the fields of the object; maintained by the server.'),
})

export type ObjectMeta = Infer<typeof objectMeta>

export const labelSelectorRequirement = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement',
  'A requirement on a label: key, operator and values.',
  {
    key: req(1, string, 'Key of the label.'),
    operator: req(2, string, 'Operator: In, NotIn, Exists or DoesNotExist.'),
    values: opt(3, list(string), 'Values; at least one for In and NotIn, none for the others.'),
  },
)

export const labelSelector = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector',
  'Selects objects that meet all requirements; an empty selector selects all objects.',
  {
    matchLabels: opt(1, map(string), 'Required labels and their values.'),
    matchExpressions: opt(2, list(labelSelectorRequirement), 'Further requirements.'),
  },
  { atomic: true },
)

export type LabelSelector = Infer<typeof labelSelector>
