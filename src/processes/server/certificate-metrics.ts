// Registers metrics for the expiration times of the server's certificates.
import { X509Certificate } from 'node:crypto'
import { Gauge, type Registry } from 'prom-client'
import type { Pki } from '../../apiserver/index.ts'

type Certificates = Pick<Pki, 'caCert' | 'servingCert' | 'admin' | 'viewer'>

/** Returns a function that updates the metrics after the certificates are renewed. */
export function registerCertificateMetrics(registry: Registry, pki: Certificates): (renewed: Certificates) => void {
  const expiration = new Gauge({
    name: 'stowage_certificate_expiration_timestamp_seconds',
    help: 'When a certificate expires, in seconds since the epoch.',
    labelNames: ['certificate'],
    registers: [registry],
  })
  const setTimes = ({ caCert: ca, servingCert: serving, admin, viewer }: Certificates) => {
    for (const [certificate, pem] of Object.entries({ ca, serving, admin: admin.cert, viewer: viewer.cert })) {
      expiration.set({ certificate }, Date.parse(new X509Certificate(pem).validTo) / 1_000)
    }
  }
  setTimes(pki)
  return setTimes
}
