// The schema of Namespace. The rules are in namespace.ts.
import { type Infer, list, object, oneOf, opt, req, string, time } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const namespaceSpec = object('io.k8s.api.core.v1.NamespaceSpec', 'Desired state of a namespace.', {
  finalizers: opt(
    1,
    list(string),
    'Finalizers that must be removed before the namespace is deleted; changed only through the finalize subresource.',
  ),
})

const namespaceCondition = object(
  'io.k8s.api.core.v1.NamespaceCondition',
  'A condition of a namespace, mostly about its deletion.',
  {
    type: req(1, string, 'Type of the condition.'),
    status: req(2, string, 'Status of the condition: True, False or Unknown.'),
    lastTransitionTime: opt(4, time, 'When the status last changed.'),
    reason: opt(5, string, 'Machine-readable reason for the status, in CamelCase.'),
    message: opt(6, string, 'Human-readable explanation of the status.'),
  },
)

const namespaceStatus = object('io.k8s.api.core.v1.NamespaceStatus', 'Current state of a namespace.', {
  phase: opt(1, oneOf('Active', 'Terminating'), 'Active, or Terminating while its contents are being deleted.'),
  conditions: opt(2, list(namespaceCondition), 'Conditions that describe what blocks the deletion.', {
    merge: 'type',
    list: 'map',
    keys: ['type'],
  }),
})

export const namespace = object('io.k8s.api.core.v1.Namespace', 'A scope for names, quotas and access control.', {
  metadata: req(1, objectMeta, 'Standard object metadata.'),
  spec: opt(2, namespaceSpec, 'Desired state of the namespace.'),
  status: opt(3, namespaceStatus, 'Current state of the namespace.'),
})

export type Namespace = Infer<typeof namespace>
