// Manifests for the screenshots: claims of three teams in several states, quotas, and a storage class.
import { claimManifest, podManifest } from './console.fixture.ts'

const inNamespace = (namespace: string, manifests: string): string =>
  manifests.replaceAll(/metadata: \{name: ([^}]+)\}/g, `metadata: {name: $1, namespace: ${namespace}}`)

const claimInUse = (name: string, size: string, fields = ''): string =>
  claimManifest(name, size, fields) + podManifest(`${name}-0`, name)

const NAMESPACES = ['shop', 'analytics', 'lab']

/** Objects that are applied before the claims. */
export const CLUSTER_MANIFESTS = `
${NAMESPACES.map((name) => `---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`).join('\n')}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local-retain}
provisioner: local.csi.stowage.dev
reclaimPolicy: Retain
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: storage, namespace: shop}
spec: {hard: {requests.storage: 20Gi, persistentvolumeclaims: '12'}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: storage, namespace: analytics}
spec: {hard: {requests.storage: 8Gi, persistentvolumeclaims: '5', local.storageclass.storage.k8s.io/requests.storage: 6Gi}}
`

/** Claims in use, claims that wait, and claims that cannot be provisioned. */
export const CLAIM_MANIFESTS =
  inNamespace(
    'shop',
    claimInUse('orders-db', '2Gi') +
      claimInUse('catalog-db', '1Gi') +
      claimInUse('images', '3Gi') +
      claimInUse('search-index', '1536Mi') +
      claimManifest('sessions', '1Gi'),
  ) +
  inNamespace(
    'analytics',
    claimInUse('events', '2Gi') +
      claimInUse('reports', '1Gi', ', storageClassName: local-retain') +
      claimManifest('warehouse', '2Gi', ', storageClassName: directory'),
  ) +
  inNamespace(
    'lab',
    claimInUse('experiment-1', '1Gi') +
      claimInUse('experiment-2', '1Gi') +
      claimInUse('giant', '400Gi') +
      claimManifest('typo', '5Gi', ', storageClassName: lokal'),
  )

/** The pods that become ready. */
export const READY_PODS: readonly (readonly [namespace: string, name: string])[] = [
  ['shop', 'orders-db-0'],
  ['shop', 'catalog-db-0'],
  ['shop', 'images-0'],
  ['shop', 'search-index-0'],
  ['analytics', 'events-0'],
  ['analytics', 'reports-0'],
  ['lab', 'experiment-1-0'],
  ['lab', 'experiment-2-0'],
]
