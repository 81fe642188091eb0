// The TLS options of the HTTPS listener, and access to the client certificate of a connection.
import type { SecureContextOptions, TLSSocket, TlsOptions } from 'node:tls'
import type { Pki } from './pki.ts'

export interface ClientCertificate {
  /** The certificate in DER encoding. */
  readonly der: Uint8Array
  /** Whether the TLS handshake has verified it as a client certificate of the configured CA. */
  readonly isTrusted: boolean
}

/**
 * Returns the TLS options of the listener. Client certificates are optional, because clients may authenticate with a token
 * or stay anonymous. An untrusted certificate does not fail the handshake, so that the response can contain the reason.
 */
export const servingTlsOptions = (
  pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'>,
): TlsOptions & SecureContextOptions => ({
  cert: pki.servingCert,
  key: pki.servingKey,
  ca: pki.caCert,
  requestCert: true,
  rejectUnauthorized: false,
  minVersion: 'TLSv1.2',
})

const certificatesBySocket = new WeakMap<TLSSocket, ClientCertificate>()

/** Returns the same object for all requests on a connection, so that callers can use it as a cache key. */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const cachedCertificate = certificatesBySocket.get(socket)
  if (cachedCertificate) return cachedCertificate
  // Node.js also sets `authorized` on a resumed session without a client certificate, so check for the certificate first.
  const x509 = socket.getPeerX509Certificate()
  if (!x509) return undefined
  const clientCertificate = { der: x509.raw, isTrusted: socket.authorized }
  certificatesBySocket.set(socket, clientCertificate)
  return clientCertificate
}
