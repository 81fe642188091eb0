// TLS for authentication: the options of the listener, and the client certificate of a connection.
// authenticate.ts decides which user a certificate identifies.
import type { SecureContextOptions, TLSSocket, TlsOptions } from 'node:tls'
import type { Pki } from './pki.ts'

export interface ClientCertificate {
  /** The certificate itself, in DER. */
  der: Uint8Array
  /** Whether the TLS handshake verified it as a client certificate of our CA. */
  trusted: boolean
}

/**
 * A client certificate is requested but not required: requests with tokens and anonymous requests use the same port, and
 * an untrusted certificate gets a 401 with an explanation instead of a closed connection.
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

const certificates = new WeakMap<object, ClientCertificate>()

/** Returns the same object for every request of a connection, so that results can be cached by it. */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const cached = certificates.get(socket)
  if (cached) return cached
  // `authorized` alone is not enough: it is also set on a resumed session that never had a certificate.
  const certificate = socket.getPeerX509Certificate()
  if (!certificate) return undefined
  const clientCertificate = { der: certificate.raw, trusted: socket.authorized }
  certificates.set(socket, clientCertificate)
  return clientCertificate
}
