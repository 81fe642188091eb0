// Finds the CA of a server that the machine does not trust yet: reads it from the public ConfigMap kube-public/cluster-info
// without verifying the server, and accepts it only if its public key has a pinned hash, as kubeadm does.
import { createHash, X509Certificate } from 'node:crypto'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/usage-error.ts'
import { httpClient } from '../../client/index.ts'

export interface DiscoverCaOptions {
  readonly server: string
  /** Hashes such as `sha256:1234…`. One of them must match. */
  readonly pins: readonly string[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

const PIN = /^sha256:[0-9a-f]{64}$/i

/** Hashes the public key of a CA certificate in PEM, in the format of `--ca-cert-hash`. */
export const computeCaPin = (pem: string): string =>
  `sha256:${createHash('sha256')
    .update(new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')}`

/** Returns the CA certificate in PEM. */
export async function discoverCa({ server, pins, clock, signal }: DiscoverCaOptions): Promise<string> {
  const badPin = pins.find((pin) => !PIN.test(pin))
  if (badPin !== undefined || pins.length === 0) {
    throw new UsageError(
      `--ca-cert-hash ${JSON.stringify(badPin ?? '')}: expected sha256: and 64 hexadecimal digits, as "stowage token create" prints it`,
    )
  }
  const client = httpClient({ connection: { server, insecure: true, credentials: async () => ({}) }, clock })
  try {
    const ref = { namespace: 'kube-public', name: 'cluster-info' }
    const { data } = await client.get(configMapKind, ref, { signal })
    const [, base64 = ''] = /certificate-authority-data"?:\s*"?([A-Za-z0-9+/=]+)/.exec(data?.kubeconfig ?? '') ?? []
    const pem = Buffer.from(base64, 'base64').toString('utf8')
    const pin = pinOf(pem)
    if (pin === undefined) throw new Error(`The ConfigMap kube-public/cluster-info of ${server} has no CA certificate.`)
    if (pins.some((candidate) => candidate.toLowerCase() === pin)) return pem
    throw new UsageError(
      `The CA of ${server} has the hash ${pin}, which does not match --ca-cert-hash: this is another server, or the connection is intercepted. ` +
        'Compare it with the output of "stowage token create".',
    )
  } finally {
    client.close()
  }
}

function pinOf(pem: string): string | undefined {
  try {
    return computeCaPin(pem)
  } catch {
    return undefined
  }
}
