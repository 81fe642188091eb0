// Objects are created only in namespaces that exist and stay; the three built-in namespaces cannot be deleted.
import { forbidden, notFound } from '../../api/status-error.ts'
import type { AdmissionPlugin } from './admission.ts'

const NAMESPACES = { group: '', plural: 'namespaces' }
export const BUILT_IN_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']
const UNDELETABLE = new Set(['default', 'kube-system', 'kube-public'])

export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  validate({ operation, resource, namespace, name, find }) {
    if (operation === 'DELETE' && resource.group === '' && resource.plural === 'namespaces' && UNDELETABLE.has(name)) {
      throw forbidden(NAMESPACES, name, 'this namespace may not be deleted')
    }
    if (operation !== 'CREATE' || !resource.kind.namespaced) return undefined
    const home = find('', 'namespaces', '', namespace)
    if (!home) throw notFound(NAMESPACES, namespace)
    if (home.metadata.deletionTimestamp || home.status?.phase === 'Terminating') {
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
