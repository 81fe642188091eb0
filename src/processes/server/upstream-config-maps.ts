// Writes the ConfigMaps in kube-system that a Kubernetes API server creates and other Kubernetes components read.
import { X509Certificate } from 'node:crypto'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { ConfigMap } from '../../api/kinds/config-map/config-map-schema.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import { issueKeylessCa } from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import { timestamp } from '../../base/timestamps.ts'
import { type Client, find } from '../../client/index.ts'

export interface UpstreamConfigMapsDeps {
  readonly client: Client
  /** The CA of client certificates, as PEM. */
  readonly caCert: string
  readonly clock: Clock
}

/**
 * Creates and updates the ConfigMaps. Called at every start, because the CA may have changed or a ConfigMap may have been
 * deleted.
 */
export async function writeUpstreamConfigMaps(deps: UpstreamConfigMapsDeps): Promise<void> {
  if (!(await deps.client.serves(configMapKind))) return
  await writeAuthenticationConfig(deps)
  await createTokenTracking(deps)
}

const AUTHENTICATION = { name: 'extension-apiserver-authentication', namespace: 'kube-system' }
const PROXY_CA = 'requestheader-client-ca-file'

/**
 * Publishes the CA of client certificates, so that kube-scheduler, kube-controller-manager and extension API servers accept the
 * certificates that this server accepts. They also require a CA for authenticating proxies. This server has no proxy, so the key
 * of that CA is discarded and no certificate can be issued with it.
 */
async function writeAuthenticationConfig({ client, caCert, clock }: UpstreamConfigMapsDeps): Promise<void> {
  const configMap = await find(client, configMapKind, AUTHENTICATION)
  const proxyCa = configMap?.data?.[PROXY_CA]
  const data = {
    'client-ca-file': caCert,
    [PROXY_CA]:
      proxyCa && isValidForAYear(proxyCa, clock.nowMs()) ? proxyCa : issueKeylessCa('stowage-front-proxy-ca', clock),
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  }
  if (!configMap && (await createIfAbsent(client, { metadata: AUTHENTICATION, data }))) return
  await client.patch(configMapKind, AUTHENTICATION, { type: 'merge', body: { data } })
}

const YEAR_MS = 365 * 24 * 60 * 60 * 1_000

/** Returns whether the CA remains valid for at least a year. */
function isValidForAYear(pem: string, nowMs: number): boolean {
  try {
    return Date.parse(new X509Certificate(pem).validTo) - nowMs > YEAR_MS
  } catch {
    return false
  }
}

const TOKEN_TRACKING = { name: 'kube-apiserver-legacy-service-account-token-tracking', namespace: 'kube-system' }

/** Records the first start as the beginning of legacy token tracking, which kube-controller-manager reads. */
async function createTokenTracking({ client, clock }: UpstreamConfigMapsDeps): Promise<void> {
  const [since = ''] = timestamp(clock.nowMs()).split('T')
  await createIfAbsent(client, { metadata: TOKEN_TRACKING, data: { since } })
}

/** Returns whether the ConfigMap was created. */
async function createIfAbsent(client: Client, configMap: ConfigMap): Promise<boolean> {
  try {
    await client.create(configMapKind, configMap)
    return true
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return false
  }
}
