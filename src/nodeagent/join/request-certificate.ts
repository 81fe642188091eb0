// Requests a node certificate from the server with a new key, which never leaves the machine.
import { generateKeyPairSync } from 'node:crypto'
import { createCertificationRequest } from '../../api/certification-request.ts'
import { certificateSigningRequestKind } from '../../api/kinds/certificate-signing-request/certificate-signing-request.ts'
import { KUBELET_CLIENT_SIGNER } from '../../api/kinds/certificate-signing-request/signer-name.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'

export interface RequestCertificateOptions {
  readonly client: Pick<Client, 'create' | 'get'>
  readonly nodeName: string
  /** Default: a client certificate. */
  readonly use?: CertificateUse
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called once if the certificate is not issued within NOTICE_DELAY_MS, with the request's name. */
  onWaiting(requestName: string): void
}

export interface CertificateUse {
  readonly signerName: string
  readonly usage: 'client auth' | 'server auth'
  readonly dnsNames: readonly string[]
}

const CLIENT_USE: CertificateUse = { signerName: KUBELET_CLIENT_SIGNER, usage: 'client auth', dnsNames: [] }

export interface KeyAndCertificate {
  /** PEM. */
  readonly key: string
  /** PEM. */
  readonly cert: string
}

const POLL_INTERVAL_MS = 500
const NOTICE_DELAY_MS = 5_000

export async function requestCertificate(options: RequestCertificateOptions): Promise<KeyAndCertificate> {
  const { client, nodeName, clock, signal } = options
  const { signerName, usage, dnsNames } = options.use ?? CLIENT_USE
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }
  const request = Buffer.from(createCertificationRequest({ subject, key: privateKey, dnsNames })).toString('base64')
  const { metadata } = await client.create(
    certificateSigningRequestKind,
    {
      metadata: { generateName: `node-csr-${nodeName.slice(0, 200)}-` },
      spec: { request, signerName, usages: ['digital signature', usage] },
    },
    { signal },
  )
  const { name } = metadata
  for (let waitedMs = 0; ; waitedMs += POLL_INTERVAL_MS) {
    const csr = await client.get(certificateSigningRequestKind, { name }, { signal })
    if (csr.status?.certificate) {
      const cert = Buffer.from(csr.status.certificate, 'base64').toString('utf8')
      return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert }
    }
    const denial = csr.status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed')
    if (denial) {
      throw new Error(`The certificate request "${name}" was not granted (${denial.type}): ${denial.message ?? ''}`)
    }
    if (waitedMs === NOTICE_DELAY_MS) options.onWaiting(name)
    await clock.sleep(POLL_INTERVAL_MS, signal)
  }
}
