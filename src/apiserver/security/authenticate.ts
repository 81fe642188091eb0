// Authenticates a request: by client certificate first, then by bearer token; without either the user is anonymous.
// Invalid credentials are rejected, never treated as anonymous. authorize.ts decides what the user may do.
import { createHash, type KeyObject, X509Certificate } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { UID_ATTRIBUTE } from './certificate.ts'
import { type Refusal, unauthorized } from './errors.ts'
import type { ClientCertificate } from './tls.ts'
import type { TokenRecord } from './tokens.ts'
import { ANONYMOUS, type UserInfo, withAuthenticationGroup } from './user.ts'

export interface Credentials {
  /** The Authorization header, as received. */
  authorization?: string
  /** From clientCertificateOf. */
  clientCert?: ClientCertificate
}

export type Authentication =
  | { is: 'known'; user: UserInfo }
  | { is: 'anonymous'; user: UserInfo }
  | { is: 'refused'; refusal: Refusal }

export interface Authenticator {
  authenticate(credentials: Credentials): Authentication
  /** The user of a bearer token; undefined if the token is not known. */
  authenticateToken(token: string): UserInfo | undefined
}

export interface AuthenticatorOptions {
  /** PEM. Only certificates that this CA issued directly are accepted. */
  caCert: string
  tokens: readonly TokenRecord[]
  clock: Clock
}

/** Parsed certificates kept for new connections of the same client; beyond this, the least recently used are dropped. */
const CERTIFICATES_CACHED_MAX = 10_000

export function createAuthenticator({ caCert, tokens, clock }: AuthenticatorOptions): Authenticator {
  const ca = new X509Certificate(caCert)
  const { publicKey: caKey } = ca // read once: the getter creates a new key object each time
  const identities = new WeakMap<ClientCertificate, Identity>()
  const readings = new LruCache<string, Reading>(CERTIFICATES_CACHED_MAX)
  const usersByTokenHash = new Map(tokens.map((record) => [hashOf(record.token), userOfToken(record)]))

  const authenticateToken = (token: string) => usersByTokenHash.get(hashOf(token))

  const identify = (clientCert: ClientCertificate): Identity => {
    const before = identities.get(clientCert)
    if (before) return before
    const { der, trusted } = clientCert
    const fingerprint = createHash('sha256').update(der).digest('hex')
    const reading = readings.get(fingerprint) ?? readCertificate(der, { fingerprint, ca, caKey })
    // Only valid ones: unknown clients could send any number of others.
    if (!('because' in reading)) readings.set(fingerprint, reading)
    const identity = 'because' in reading ? reading : { ...reading, trusted }
    identities.set(clientCert, identity)
    return identity
  }

  return {
    authenticateToken,
    authenticate({ authorization, clientCert }) {
      const byCertificate = clientCert && byIdentity(identify(clientCert), clock.nowMs())
      if (byCertificate?.is === 'known') return byCertificate
      const byHeader = authorization?.trim() ? byAuthorization(authorization, authenticateToken) : undefined
      if (byHeader?.is === 'known') return byHeader
      return byCertificate ?? byHeader ?? { is: 'anonymous', user: ANONYMOUS }
    },
  }
}

/** The user and validity of a certificate, or the reason why it is not accepted. */
type Reading = { user: UserInfo; notBeforeMs: number; notAfterMs: number } | { because: string }

/** The same, with the result of this connection's TLS handshake. */
type Identity = (Exclude<Reading, { because: string }> & { trusted: boolean }) | { because: string }

/** Checks the validity on every request: a connection or a resumed TLS session can outlive the certificate. */
function byIdentity(identity: Identity, nowMs: number): Authentication {
  if ('because' in identity) return refused(identity.because)
  const { user, notBeforeMs, notAfterMs, trusted } = identity
  const of = `the client certificate of "${user.name}"`
  if (nowMs < notBeforeMs) return refused(`${of} is not valid before ${new Date(notBeforeMs).toISOString()}`)
  if (nowMs > notAfterMs) return refused(`${of} expired at ${new Date(notAfterMs).toISOString()}`)
  if (!trusted) return refused(`${of} is not a client certificate, or the TLS handshake found it invalid`)
  return { is: 'known', user }
}

const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id'

/** Subject CN is the user, each O a group. Verifies the CA again, in case TLS is configured to trust other CAs too. */
function readCertificate(
  der: Uint8Array,
  { fingerprint, ca, caKey }: { fingerprint: string; ca: X509Certificate; caKey: KeyObject },
): Reading {
  const certificate = new X509Certificate(der)
  const isOurs = certificate.checkIssued(ca) && certificate.verify(caKey)
  if (!isOurs) return { because: "the client certificate was not issued by this server's CA" }

  const subject = certificate.toLegacyObject().subject as unknown as Record<string, string | string[] | undefined>
  const name = listOf(subject.CN).at(-1)
  if (!name) return { because: 'the client certificate has no user: its subject has no CN' }
  const uids = listOf(subject[UID_ATTRIBUTE])
  if (uids.length > 1) return { because: 'the client certificate has more than one uid' }

  const user = withAuthenticationGroup({
    name,
    groups: listOf(subject.O),
    uid: uids[0],
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
  })
  return { user, notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) }
}

function byAuthorization(header: string, authenticateToken: Authenticator['authenticateToken']): Authentication {
  const [scheme = '', token] = header.trim().split(/ +/)
  if (scheme.toLowerCase() !== 'bearer') return refused('only bearer tokens are accepted in the Authorization header')
  if (!token) return refused('the bearer token in the Authorization header is empty')
  const user = authenticateToken(token)
  return user ? { is: 'known', user } : refused('the bearer token is not known')
}

const userOfToken = ({ user, uid, groups }: TokenRecord): UserInfo =>
  withAuthenticationGroup({ name: user, groups, uid })

/** Tokens are looked up by hash, so the time of a lookup does not depend on how much of a guess is right. */
const hashOf = (token: string) => createHash('sha256').update(token).digest('base64')

const refused = (because: string): Authentication => ({ is: 'refused', refusal: unauthorized(because) })

const listOf = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]
