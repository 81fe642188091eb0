// Provides the agent's serving certificate, by which API servers verify that they have reached this node. The agent requests
// the certificate from the server and stores it in its root directory.
//   ROOT/pki/serving.pem    certificate and private key
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { KUBELET_SERVING_SIGNER } from '../../api/kinds/certificate-signing-request/signer-name.ts'
import { nodeServingName } from '../../api/kinds/node/node-certificates.ts'
import type { Clock } from '../../base/clock.ts'
import { ensurePrivateDirectory, readTextIfPresent, writePrivateFile } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type KeyAndCertificate, requestCertificate } from './request-certificate.ts'

export interface ServingCertificateOptions {
  readonly root: string
  readonly nodeName: string
  /** The CA of the cluster in PEM. */
  readonly ca: string
  readonly client: Pick<Client, 'create' | 'get'>
  readonly clock: Clock
  readonly log: Logger
}

/** A stored certificate is replaced when less than this fraction of its lifetime is left. */
const LIFETIME_LEFT_MIN = 0.3

/** Returns the stored certificate if it is usable. Otherwise requests a new one and stores it. */
export async function ensureServingCertificate(
  { root, nodeName, ca, client, clock, log }: ServingCertificateOptions,
  signal: AbortSignal,
): Promise<KeyAndCertificate> {
  const path = join(root, 'pki', 'serving.pem')
  const stored = splitPem(await readTextIfPresent(path))
  if (stored && isUsable(stored, { nodeName, ca, nowMs: clock.nowMs() })) return stored
  const pair = await requestCertificate({
    client,
    nodeName,
    use: { signerName: KUBELET_SERVING_SIGNER, usage: 'server auth', dnsNames: [nodeServingName(nodeName)] },
    clock,
    signal,
    onWaiting: (request) =>
      log.warn(
        { nodeName, request },
        `no logs and commands of containers until an administrator approves the certificate with: kubectl certificate approve ${request}`,
      ),
  })
  await ensurePrivateDirectory(join(root, 'pki'))
  await writePrivateFile(path, pair.cert + pair.key)
  return pair
}

function splitPem(text: string | undefined): KeyAndCertificate | undefined {
  const [cert, key] = text?.match(/-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----\n?/g) ?? []
  return cert && key ? { cert, key } : undefined
}

function isUsable(
  { cert }: KeyAndCertificate,
  { nodeName, ca, nowMs }: { nodeName: string; ca: string; nowMs: number },
) {
  try {
    const certificate = new X509Certificate(cert)
    const [startMs, endMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    return (
      certificate.checkHost(nodeServingName(nodeName)) !== undefined &&
      certificate.verify(new X509Certificate(ca).publicKey) &&
      endMs - nowMs > (endMs - startMs) * LIFETIME_LEFT_MIN
    )
  } catch {
    return false
  }
}
