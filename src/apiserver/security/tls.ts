// The two ends of TLS that identity hangs on: how the server listens, and what it learns of a client's certificate.
// Deciding who that client is, or that it is nobody, is authenticate.ts.
import type { SecureContextOptions, TLSSocket, TlsOptions } from 'node:tls'
import type { Pki } from './pki.ts'

export interface ClientCertificate {
  /** The certificate itself, in DER. */
  der: Uint8Array
  /** Whether the handshake traced it to our CA, for the use of clients. */
  trusted: boolean
}

/**
 * A certificate is asked for but not required: tokens and anonymous requests come over the same port, and a
 * certificate we do not trust deserves a 401 that says so, rather than a broken connection.
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

const known = new WeakMap<object, ClientCertificate>()

/** The same object for every request of a connection, so that what is concluded from it can be kept with it. */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const before = known.get(socket)
  if (before) return before
  // `authorized` alone proves nothing: it is also set on a resumed session that never had a certificate.
  const certificate = socket.getPeerX509Certificate()
  if (!certificate) return undefined
  const seen = { der: certificate.raw, trusted: socket.authorized }
  known.set(socket, seen)
  return seen
}
