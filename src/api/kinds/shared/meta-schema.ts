// What every object carries: its name and identity, labels and annotations, owners, finalizers, and who set which field.
// Label selectors stand here too, since claims, capacity objects and pods all use them.
import { boolean, fieldsV1, type Infer, int64, list, map, object, opt, ptr, req, string, time } from '../../schema.ts'

export const ownerReference = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference',
  'Names an object that this one belongs to; it is deleted when its last owner is gone.',
  {
    apiVersion: req(5, string, 'API group and version of the owner, such as apps/v1.'),
    kind: req(1, string, 'Kind of the owner, such as StatefulSet.'),
    name: req(3, string, 'Name of the owner.'),
    uid: req(4, string, 'UID of the owner, so that a namesake created later does not count as it.'),
    controller: ptr(6, boolean, 'True for the one owner that manages this object.'),
    blockOwnerDeletion: ptr(7, boolean, 'Whether a foreground deletion of the owner waits for this object to be gone.'),
  },
  { atomic: true },
)

export type OwnerReference = Infer<typeof ownerReference>

export const managedFieldsEntry = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry',
  'Says which fields of the object one manager set, and how.',
  {
    manager: opt(1, string, 'Name of the client that set the fields.'),
    operation: opt(2, string, 'How the fields were set: Apply or Update.'),
    apiVersion: opt(3, string, 'API version in which the field paths below are written.'),
    time: ptr(4, time, 'When the manager last changed its set of fields.'),
    fieldsType: opt(6, string, 'Format of the field set; always FieldsV1.'),
    fieldsV1: ptr(7, fieldsV1, 'The fields, as a tree of names, list keys and values.'),
    subresource: opt(8, string, 'Subresource through which the fields were set; empty for the object itself.'),
  },
)

export type ManagedFieldsEntry = Infer<typeof managedFieldsEntry>

export const objectMeta = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
  'What every stored object has: name, identity, labels, owners and the course of its deletion.',
  {
    name: opt(1, string, 'Name of the object, unique for its kind within its namespace; cannot change.'),
    generateName: opt(2, string, 'Beginning of a name that the server completes when no name is given.'),
    namespace: opt(3, string, 'Namespace the object lives in; empty for objects that belong to the whole cluster.'),
    selfLink: opt(4, string, 'No longer filled in; kept so that older clients can send it.'),
    uid: opt(5, string, 'Identity given by the server: unlike the name it is never used again.'),
    resourceVersion: opt(
      6,
      string,
      'Version of the stored object; send it back so that an update fails if someone was faster.',
    ),
    generation: opt(7, int64, 'Counts changes of the desired state, for kinds that keep count.'),
    creationTimestamp: opt(8, time, 'When the server created the object.'),
    deletionTimestamp: ptr(9, time, 'When deletion was asked for; the object goes once its finalizers are gone.'),
    deletionGracePeriodSeconds: ptr(
      10,
      int64,
      'Seconds the object may take to end by itself after deletion was asked for.',
    ),
    labels: opt(11, map(string), 'Short keys and values by which objects are selected and grouped.'),
    annotations: opt(12, map(string), 'Keys and values for tools and people; objects are not selected by them.'),
    ownerReferences: opt(
      13,
      list(ownerReference),
      'Objects this one belongs to; when all of them are gone it is deleted.',
      { merge: 'uid', list: 'map', keys: ['uid'] },
    ),
    finalizers: opt(
      14,
      list(string),
      'Tasks that must be done before the object disappears; each is removed by whoever did it.',
      { merge: '', list: 'set' },
    ),
    managedFields: ptr(17, list(managedFieldsEntry), 'Which client set which fields; kept by the server.'),
  },
)

export type ObjectMeta = Infer<typeof objectMeta>

export const labelSelectorRequirement = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement',
  'One condition on a label: its key, an operator and the values to compare with.',
  {
    key: req(1, string, 'Label key the condition is about.'),
    operator: req(2, string, 'How the label is compared: In, NotIn, Exists or DoesNotExist.'),
    values: opt(3, list(string), 'Values to compare with; at least one for In and NotIn, none for the others.'),
  },
)

export type LabelSelectorRequirement = Infer<typeof labelSelectorRequirement>

export const labelSelector = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector',
  'Selects objects by their labels; all conditions must hold, and an empty selector selects everything.',
  {
    matchLabels: opt(1, map(string), 'Labels the object must have with exactly these values.'),
    matchExpressions: opt(2, list(labelSelectorRequirement), 'Further conditions, each of which must hold.'),
  },
  { atomic: true },
)

export type LabelSelector = Infer<typeof labelSelector>
