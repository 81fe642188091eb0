// Authenticates a request by client certificate or, failing that, by bearer token. A request without credentials is
// anonymous; one whose credentials are all invalid is rejected.
import { createHash, type KeyObject, X509Certificate } from 'node:crypto'
import { UID_ATTRIBUTE } from '../../api/distinguished-name.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { type RejectionStatus, unauthorized } from './errors.ts'
import { type CertificateId, NO_REVOCATIONS, normalizeSerial, type Revocations } from './revocations.ts'
import type { ClientCertificate } from './tls.ts'
import { firstTokenAuthenticator, type TokenAuthentication, type TokenAuthenticator } from './token-authenticator.ts'
import { ANONYMOUS, type UserInfo, withAuthenticationGroup } from './user.ts'

interface Credentials {
  /** The value of the Authorization header. */
  authorization?: string
  /** The result of clientCertificateOf. */
  clientCert?: ClientCertificate
}

export type Authentication =
  | { is: 'authenticated'; user: UserInfo }
  | { is: 'anonymous'; user: UserInfo }
  | { is: 'rejected'; status: RejectionStatus }

export interface Authenticator {
  authenticate(credentials: Credentials): Authentication
  /** Authenticates a bearer token for one of the audiences. Default: the API server's. Undefined for an unknown token. */
  authenticateToken(token: string, audiences?: readonly string[]): TokenAuthentication | undefined
}

/** An authenticator whose CA and revocations can be replaced. The new ones apply from the next request. */
export interface ReloadableAuthenticator extends Authenticator {
  /** Throws if the PEM has no valid certificate. */
  setCaCert(caCert: string): void
  setRevocations(revocations: Revocations): void
}

export interface AuthenticatorOptions {
  /** One or more CA certificates in PEM. Only certificates that one of them has issued directly are accepted. */
  caCert: string
  /** Tried in order. */
  tokenAuthenticators: readonly TokenAuthenticator[]
  /** The audiences of tokens for the API server. Default: none, so that only tokens without audiences are accepted. */
  apiAudiences?: readonly string[]
  clock: Clock
}

const CACHED_CERTIFICATES_MAX = 10_000

export function createAuthenticator({
  caCert,
  tokenAuthenticators,
  apiAudiences = [],
  clock,
}: AuthenticatorOptions): ReloadableAuthenticator {
  let issuers = parseIssuers(caCert)
  let isRevoked = NO_REVOCATIONS
  let identities = new WeakMap<ClientCertificate, ConnectionIdentity>()
  let validCertificates = new LruCache<string, CertificateIdentity>(CACHED_CERTIFICATES_MAX)
  const authenticateToken = firstTokenAuthenticator(tokenAuthenticators, apiAudiences)

  const identityOf = (clientCert: ClientCertificate): ConnectionIdentity => {
    const cachedIdentity = identities.get(clientCert)
    if (cachedIdentity) return cachedIdentity
    const { der, isTrusted } = clientCert
    const fingerprint = createHash('sha256').update(der).digest('hex')
    const certificateIdentity = validCertificates.get(fingerprint) ?? parseCertificate(der, { fingerprint, issuers })
    // Cache only valid certificates, because unknown clients can send any number of invalid ones.
    if (!('rejection' in certificateIdentity)) validCertificates.set(fingerprint, certificateIdentity)
    const identity = 'rejection' in certificateIdentity ? certificateIdentity : { ...certificateIdentity, isTrusted }
    identities.set(clientCert, identity)
    return identity
  }

  return {
    authenticateToken,
    authenticate({ authorization, clientCert }) {
      const byCertificate = clientCert && authenticateIdentity(identityOf(clientCert), isRevoked, clock.nowMs())
      if (byCertificate?.is === 'authenticated') return byCertificate
      const byHeader = authorization?.trim() ? authenticateHeader(authorization, authenticateToken) : undefined
      if (byHeader?.is === 'authenticated') return byHeader
      return byCertificate ?? byHeader ?? { is: 'anonymous', user: ANONYMOUS }
    },
    setCaCert(newCaCert) {
      issuers = parseIssuers(newCaCert)
      identities = new WeakMap()
      validCertificates = new LruCache(CACHED_CERTIFICATES_MAX)
    },
    setRevocations(revocations) {
      isRevoked = revocations
    },
  }
}

interface Issuer {
  readonly certificate: X509Certificate
  readonly publicKey: KeyObject
}

function parseIssuers(pem: string): Issuer[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [pem]
  return blocks.map((block) => {
    const certificate = new X509Certificate(block)
    return { certificate, publicKey: certificate.publicKey } // the getter creates a new key object on each access
  })
}

/** The user and validity of a certificate, or the reason for its rejection. */
type CertificateIdentity =
  | { user: UserInfo; notBeforeMs: number; notAfterMs: number; id: CertificateId }
  | { rejection: string }

/** The identity of a certificate, with the result of its TLS handshake. */
type ConnectionIdentity =
  | (Exclude<CertificateIdentity, { rejection: string }> & { isTrusted: boolean })
  | { rejection: string }

/** Checks validity and revocation on every request, because a connection can outlive its certificate. */
function authenticateIdentity(identity: ConnectionIdentity, isRevoked: Revocations, nowMs: number): Authentication {
  if ('rejection' in identity) return reject(identity.rejection)
  const { user, notBeforeMs, notAfterMs, isTrusted, id } = identity
  const certificate = `the client certificate of "${user.name}"`
  if (isRevoked(id)) return reject(`${certificate} is revoked`)
  if (isTrusted && nowMs >= notBeforeMs && nowMs <= notAfterMs) return { is: 'authenticated', user }
  if (nowMs < notBeforeMs) return reject(`${certificate} is not valid before ${new Date(notBeforeMs).toISOString()}`)
  if (nowMs > notAfterMs) return reject(`${certificate} expired at ${new Date(notAfterMs).toISOString()}`)
  return reject(`${certificate} is not a client certificate, or the TLS handshake found it invalid`)
}

const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id'

/** Maps the subject's CN to the user and each O to a group. Verifies the issuer, because TLS may trust other CAs too. */
function parseCertificate(
  der: Uint8Array,
  { fingerprint, issuers }: { fingerprint: string; issuers: readonly Issuer[] },
): CertificateIdentity {
  const certificate = new X509Certificate(der)
  const isIssuedByCa = issuers.some(
    (issuer) => certificate.checkIssued(issuer.certificate) && certificate.verify(issuer.publicKey),
  )
  if (!isIssuedByCa) return { rejection: "the client certificate was not issued by this server's CA" }

  const subject = certificate.toLegacyObject().subject as unknown as Record<string, string | string[] | undefined>
  const name = toArray(subject.CN).at(-1)
  if (!name) return { rejection: 'the client certificate has no user: its subject has no CN' }
  const uids = toArray(subject[UID_ATTRIBUTE])
  if (uids.length > 1) return { rejection: 'the client certificate has more than one uid' }

  const user = withAuthenticationGroup({
    name,
    groups: toArray(subject.O),
    uid: uids[0],
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
  })
  return {
    user,
    notBeforeMs: Date.parse(certificate.validFrom),
    notAfterMs: Date.parse(certificate.validTo),
    id: { fingerprint, serialNumber: normalizeSerial(certificate.serialNumber) },
  }
}

function authenticateHeader(header: string, authenticateToken: Authenticator['authenticateToken']): Authentication {
  const [scheme = '', token] = header.trim().split(/ +/)
  if (scheme.toLowerCase() !== 'bearer') return reject('only bearer tokens are accepted in the Authorization header')
  if (!token) return reject('the bearer token in the Authorization header is empty')
  const authentication = authenticateToken(token)
  if (!authentication) return reject('the bearer token is not known')
  if ('rejection' in authentication) return reject(authentication.rejection)
  return { is: 'authenticated', user: authentication.user }
}

const reject = (reason: string): Authentication => ({ is: 'rejected', status: unauthorized(reason) })

const toArray = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]
