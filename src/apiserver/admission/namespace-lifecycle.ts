// Rejects creates in missing or terminating namespaces, and the deletion of default, kube-system and kube-public.
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { forbidden, notFound } from '../../api/status-error.ts'
import type { AdmissionPlugin } from './admission.ts'

export const BUILT_IN_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']
const UNDELETABLE_NAMESPACES = new Set(['default', 'kube-system', 'kube-public'])

export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  validate({ operation, resource, namespace, name, find }) {
    if (
      operation === 'DELETE' &&
      resource.group === '' &&
      resource.plural === 'namespaces' &&
      UNDELETABLE_NAMESPACES.has(name)
    ) {
      throw forbidden(namespaceKind, name, 'this namespace may not be deleted')
    }
    if (operation !== 'CREATE' || !resource.kind.namespaced) return undefined
    const namespaceObject = find(namespaceKind, '', namespace)
    if (!namespaceObject) throw notFound(namespaceKind, namespace)
    if (namespaceObject.metadata.deletionTimestamp || namespaceObject.status?.phase === 'Terminating') {
      throw forbidden(
        resource,
        name,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
        [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      )
    }
    return undefined
  },
}
