// Metrics with the expiration times of the server's certificates. Certificates are renewed only when the server starts, so a
// long-running process can outlive them.
import { X509Certificate } from 'node:crypto'
import { Gauge, type Registry } from 'prom-client'
import type { Pki } from '../apiserver/index.ts'

export function registerCertificateMetrics(
  registry: Registry,
  pki: Pick<Pki, 'caCert' | 'servingCert' | 'admin' | 'viewer'>,
) {
  const expiration = new Gauge({
    name: 'stowage_certificate_expiration_timestamp_seconds',
    help: 'When a certificate expires, in seconds since the epoch.',
    labelNames: ['certificate'],
    registers: [registry],
  })
  const { caCert: ca, servingCert: serving, admin, viewer } = pki
  for (const [certificate, pem] of Object.entries({ ca, serving, admin: admin.cert, viewer: viewer.cert })) {
    expiration.set({ certificate }, Date.parse(new X509Certificate(pem).validTo) / 1_000)
  }
}
