// Publishes the certificate authority of client certificates where kube-scheduler, kube-controller-manager and extension
// servers read it, so that their own ports accept the certificates that this server accepts.
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { isAlreadyExists } from '../api/status-error.ts'
import type { Client } from '../client/index.ts'

const REF = { name: 'extension-apiserver-authentication', namespace: 'kube-system' }

/** Creates or updates the ConfigMap. Runs at every start, because the CA may be new and the ConfigMap may be deleted. */
export async function publishClientCa(client: Client, caCert: string): Promise<void> {
  if (!(await client.serves(configMapKind))) return
  const data = { 'client-ca-file': caCert }
  try {
    await client.create(configMapKind, { metadata: REF, data })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    await client.patch(configMapKind, REF, { type: 'merge', body: { data } })
  }
}
