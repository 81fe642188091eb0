// The TLS options of the HTTPS listener, and access to the client certificate of a connection.
import { constants } from 'node:crypto'
import type { PeerCertificate, SecureContextOptions, TLSSocket, TlsOptions } from 'node:tls'
import { LruCache } from '../../base/lru-cache.ts'
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
 * Sessions cannot be resumed: a resumed session keeps the verification of an earlier handshake, and its tickets, which contain
 * the client certificate, grow the write buffer of each connection from 1.4 to 18 kB, which Node.js keeps.
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
  secureOptions: constants.SSL_OP_NO_TICKET,
})

const certificatesBySocket = new WeakMap<TLSSocket, ClientCertificate>()
const SHARED_CERTIFICATES_MAX = 1_000
/** Certificates that a handshake has verified, by fingerprint. Many connections have the same one. */
const trustedCertificates = new LruCache<string, ClientCertificate>(SHARED_CERTIFICATES_MAX)

/** Returns the same object for all requests on a connection, so that callers can use it as a cache key. */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const cachedCertificate = certificatesBySocket.get(socket)
  if (cachedCertificate) return cachedCertificate
  // Node.js also sets `authorized` on a resumed session without a client certificate, so check for the certificate first.
  const certificate = peerCertificateOf(socket)
  if (!certificate) return undefined
  // Clients can send any number of untrusted certificates, so these are not shared.
  const sharedCertificate = socket.authorized ? trustedCertificates.get(certificate.fingerprint256) : undefined
  const clientCertificate = sharedCertificate ?? { der: certificate.raw, isTrusted: socket.authorized }
  if (socket.authorized) trustedCertificates.set(certificate.fingerprint256, clientCertificate)
  certificatesBySocket.set(socket, clientCertificate)
  return clientCertificate
}

/**
 * Returns the certificate as getPeerCertificate reads it, in a third of the time of getPeerX509Certificate, which copies and
 * parses every other certificate of the chain. The latter is used for certificates that the former cannot read.
 */
function peerCertificateOf(
  socket: TLSSocket,
): { readonly raw: Uint8Array; readonly fingerprint256: string } | undefined {
  const { raw, fingerprint256 }: Partial<PeerCertificate> = socket.getPeerCertificate() ?? {}
  return raw && fingerprint256 ? { raw, fingerprint256 } : socket.getPeerX509Certificate()
}
