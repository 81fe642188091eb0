// Namespaces: rooms of their own for names, quota and rights. Rules are in kinds/namespace.ts.
import { type Infer, list, object, oneOf, opt, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const namespaceSpec = object('io.k8s.api.core.v1.NamespaceSpec', 'What is wanted of a namespace.', {
  finalizers: opt(1, list(string), 'What must be done before the namespace may go; changed only through finalize.'),
})

export const namespaceCondition = object(
  'io.k8s.api.core.v1.NamespaceCondition',
  'One statement about a namespace, mostly about its deletion.',
  {
    type: req(1, string, 'What the statement is about.'),
    status: req(2, string, 'Whether it holds: True, False or Unknown.'),
    lastTransitionTime: opt(4, time, 'When the status last changed.'),
    reason: opt(5, string, 'Why, in one word.'),
    message: opt(6, string, 'Why, in a sentence.'),
  },
)

export const namespaceStatus = object('io.k8s.api.core.v1.NamespaceStatus', 'Where a namespace is in its life.', {
  phase: opt(1, oneOf('Active', 'Terminating'), 'Active, or Terminating while its contents are being deleted.'),
  conditions: opt(2, list(namespaceCondition), 'What holds up its deletion, one statement per type.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
})

export const namespace = object('io.k8s.api.core.v1.Namespace', 'A room of its own for names, quota and rights.', {
  metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
  spec: opt(2, namespaceSpec, 'What is wanted of the namespace.'),
  status: opt(3, namespaceStatus, 'Where the namespace is in its life.'),
})

export type Namespace = Infer<typeof namespace>
