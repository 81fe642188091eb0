// Publishes the CA of the API server, with which pods verify the server, in the ConfigMap `kube-root-ca.crt` of every active
// namespace.
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { ConfigMap } from '../../api/kinds/config-map/config-map-schema.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import type { Controller } from '../../runtime/index.ts'
import { createObjectPerNamespaceController } from './object-per-namespace.ts'

const DESCRIPTION = {
  'kubernetes.io/description':
    'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal ' +
    'service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
}

export function createRootCaController({ rootCa, ...deps }: ControllerDeps & { readonly rootCa: string }): Controller {
  const data = { 'ca.crt': rootCa }
  return createObjectPerNamespaceController<ConfigMap>(
    {
      name: 'root-ca',
      kind: configMapKind,
      objectName: 'kube-root-ca.crt',
      content: { metadata: { annotations: DESCRIPTION }, data },
      repair: (configMap) => {
        const keys = Object.keys(configMap.data ?? {})
        const isCurrent = keys.length === 1 && configMap.data?.['ca.crt'] === rootCa
        return isCurrent ? undefined : { ...configMap, data }
      },
    },
    deps,
  )
}
