// Builds a kubeconfig with one cluster, one user and one context. It contains the private key, so save it with writePrivateFile.

export interface KubeconfigOptions {
  /** URL for clients: `https://127.0.0.1:7443`. */
  server: string
  /** The CA certificate of the server as PEM. */
  caCert: string
  /** The user name in the certificate, and the certificate and key as PEM. */
  credential: { user: string; cert: string; key: string }
  /** Name of the cluster; the context is named `USER@CLUSTER`. Default: `stowage`. */
  clusterName?: string
}

export function buildKubeconfig({ server, caCert, credential, clusterName = 'stowage' }: KubeconfigOptions): string {
  const cluster = quote(clusterName)
  const user = quote(credential.user)
  const context = quote(`${credential.user}@${clusterName}`)
  return `apiVersion: v1
kind: Config
clusters:
- name: ${cluster}
  cluster:
    server: ${quote(server)}
    certificate-authority-data: ${base64(caCert)}
users:
- name: ${user}
  user:
    client-certificate-data: ${base64(credential.cert)}
    client-key-data: ${base64(credential.key)}
contexts:
- name: ${context}
  context:
    cluster: ${cluster}
    user: ${user}
current-context: ${context}
preferences: {}
`
}

/** Quotes a YAML string as JSON, which is valid YAML. */
const quote = (text: string) => JSON.stringify(text)

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64')
