// Publishes the server's CA in the ConfigMap kube-public/cluster-info, which unauthenticated users may read, so that a joining
// node can verify the CA against the hash in its join command. kubeadm uses the same names.

import type { Kind, KubeObject } from '../../api/kind.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { RBAC_GROUP } from '../../api/kinds/rbac/rbac-schema.ts'
import { roleKind } from '../../api/kinds/rbac/role.ts'
import { roleBindingKind } from '../../api/kinds/rbac/role-binding.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'

const NAMESPACE = 'kube-public'
const NAME = 'cluster-info'
const ROLE = 'kubeadm:bootstrap-signer-clusterinfo'

/** Called at every start, because the CA and the address may have changed. */
export async function publishClusterInfo(
  client: Client,
  { server, caCert }: { server: string; caCert: string },
): Promise<void> {
  const cluster = { server, 'certificate-authority-data': Buffer.from(caCert).toString('base64') }
  const kubeconfig = `${JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }] }, null, 2)}\n`
  const metadata = { namespace: NAMESPACE, name: NAME }
  if (!(await createIfAbsent(client, configMapKind, { metadata, data: { kubeconfig } }))) {
    await client.patch(configMapKind, metadata, { type: 'merge', body: { data: { kubeconfig } } })
  }
  const roleMetadata = { namespace: NAMESPACE, name: ROLE }
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['configmaps'], resourceNames: [NAME] }]
  await createIfAbsent(client, roleKind, { metadata: roleMetadata, rules })
  await createIfAbsent(client, roleBindingKind, {
    metadata: roleMetadata,
    roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: ROLE },
    subjects: [{ apiGroup: RBAC_GROUP, kind: 'User', name: 'system:anonymous' }],
  })
}

/** Returns whether the object was created. */
async function createIfAbsent<T extends KubeObject>(client: Client, kind: Kind<T>, object: T): Promise<boolean> {
  try {
    await client.create(kind, object)
    return true
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return false
  }
}
