// Writes the document kubectl and every other client logs in with: one cluster, one user, one context.
// Everything is inline, so the text can be carried to another machine. It holds a private key:
// save it with writePrivateFile.

export interface KubeconfigOptions {
  /** As clients dial it: `https://127.0.0.1:7443`. */
  server: string
  /** PEM of the CA that vouches for the server. */
  caCert: string
  /** `user` as the certificate names it; certificate and key in PEM. */
  credential: { user: string; cert: string; key: string }
  /** What the cluster and its context are called. Default: `stowage`. */
  clusterName?: string
}

export function buildKubeconfig({ server, caCert, credential, clusterName = 'stowage' }: KubeconfigOptions): string {
  const cluster = quoted(clusterName)
  const user = quoted(credential.user)
  const context = quoted(`${credential.user}@${clusterName}`)
  return `apiVersion: v1
kind: Config
clusters:
- name: ${cluster}
  cluster:
    server: ${quoted(server)}
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

/** A JSON string is a YAML string too, whatever it contains. */
const quoted = (text: string) => JSON.stringify(text)

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64')
