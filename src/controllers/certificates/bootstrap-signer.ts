// Signs the kubeconfig in the ConfigMap kube-public/cluster-info with each valid bootstrap token that has the usage
// signing. A client with a token can then verify the CA before using it. Each signature is a detached JWS, as in
// kubeadm.
import { createHmac } from 'node:crypto'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { ConfigMap } from '../../api/kinds/config-map/config-map-schema.ts'
import {
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  type BootstrapToken,
  parseTokenSecret,
} from '../../api/kinds/secret/bootstrap-token-secret.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type Controller, checkAfter, createController, done, type Outcome, source } from '../../runtime/index.ts'

const NAME = 'bootstrap-signer'
const CLUSTER_INFO = { namespace: 'kube-public', name: 'cluster-info' }
const SIGNATURE_PREFIX = 'jws-kubeconfig-'
/** Maximum interval between two checks of the tokens. */
const RECHECK_MS_MAX = 24 * 60 * 60 * 1_000

export function createBootstrapSigner(deps: ControllerDeps): Controller {
  const { client, caches, clock, random, log, metrics } = deps
  const secrets = caches.of(secretKind, {
    namespace: BOOTSTRAP_TOKEN_NAMESPACE,
    fieldSelector: `type=${BOOTSTRAP_TOKEN_TYPE}`,
  })
  const configMaps = caches.of(configMapKind, {
    namespace: CLUSTER_INFO.namespace,
    fieldSelector: `metadata.name=${CLUSTER_INFO.name}`,
  })

  async function reconcile(): Promise<Outcome> {
    const configMap = configMaps.get(CLUSTER_INFO)
    const nowMs = clock.nowMs()
    const tokens = secrets
      .list()
      .flatMap((secret) => parseTokenSecret(secret) ?? [])
      .filter(({ canSign, expiresAtMs }) => canSign && expiresAtMs > nowMs)
    const data = configMap && signData(configMap, tokens)
    try {
      if (data) await client.update(configMapKind, { ...configMap, data })
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error // otherwise the change causes another reconcile
    }
    const nextExpiryMs = Math.min(...tokens.map(({ expiresAtMs }) => expiresAtMs))
    if (nextExpiryMs === Number.POSITIVE_INFINITY) return done
    return checkAfter(
      Math.min(nextExpiryMs - nowMs, RECHECK_MS_MAX),
      'the signature of a token is removed when it expires',
    )
  }

  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    metrics,
    sources: [
      source({ cache: secrets, keysOf: () => [CLUSTER_INFO.name] }),
      source({ cache: configMaps, keysOf: () => [CLUSTER_INFO.name] }),
    ],
    reconcile,
  })
  metrics?.queues.add(controller.queue)
  return controller
}

/** Returns the data with exactly the signatures of the tokens, or undefined if it has them already. */
function signData(
  { data = {} }: Readonly<ConfigMap>,
  tokens: readonly BootstrapToken[],
): ConfigMap['data'] | undefined {
  const { kubeconfig } = data
  if (kubeconfig === undefined) return undefined
  const signatures = tokens.map((token) => [`${SIGNATURE_PREFIX}${token.id}`, signatureOf(kubeconfig, token)])
  const signedData: Record<string, string> = {
    ...Object.fromEntries(Object.entries(data).filter(([key]) => !key.startsWith(SIGNATURE_PREFIX))),
    ...Object.fromEntries(signatures),
  }
  const keys = Object.keys(signedData)
  const isSigned = keys.length === Object.keys(data).length && keys.every((key) => data[key] === signedData[key])
  return isSigned ? undefined : signedData
}

/** Returns a compact JWS without the payload, which is the kubeconfig. */
function signatureOf(kubeconfig: string, { id, secret }: BootstrapToken): string {
  const header = toBase64Url(JSON.stringify({ alg: 'HS256', kid: id }))
  const signature = createHmac('sha256', secret)
    .update(`${header}.${toBase64Url(kubeconfig)}`)
    .digest('base64url')
  return `${header}..${signature}`
}

const toBase64Url = (text: string): string => Buffer.from(text).toString('base64url')
