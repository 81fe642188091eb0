// Says who a request comes from: a client certificate first, then a bearer token, and with neither, nobody in particular.
// Credentials that do not hold are refused, never taken for none. What a known user may do is authorize.ts.
import { createHash, type KeyObject, X509Certificate } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { UID_ATTRIBUTE } from './certificate.ts'
import { type Refusal, unauthorized } from './errors.ts'
import type { ClientCertificate } from './tls.ts'
import type { TokenRecord } from './tokens.ts'
import { ANONYMOUS, type UserInfo, withStandingGroup } from './user.ts'

export interface Credentials {
  /** The Authorization header, as it came. */
  authorization?: string
  /** As clientCertificateOf gives it. */
  clientCert?: ClientCertificate
}

export type Authentication =
  | { is: 'known'; user: UserInfo }
  | { is: 'anonymous'; user: UserInfo }
  | { is: 'refused'; refusal: Refusal }

export interface Authenticator {
  authenticate(credentials: Credentials): Authentication
  /** Whom a bearer token speaks for, if anyone. */
  authenticateToken(token: string): UserInfo | undefined
}

export interface AuthenticatorOptions {
  /** PEM. Only certificates this CA issued itself are believed. */
  caCert: string
  tokens: readonly TokenRecord[]
  clock: Clock
}

/** Certificates of ours that come again on new connections; beyond this many the longest unseen are read anew. */
const CERTIFICATES_REMEMBERED_MAX = 10_000

export function createAuthenticator({ caCert, tokens, clock }: AuthenticatorOptions): Authenticator {
  const ca = new X509Certificate(caCert)
  const { publicKey: caKey } = ca // once: every read makes a new key object
  const identities = new WeakMap<ClientCertificate, Identity>()
  const readings = new LruCache<string, Reading>(CERTIFICATES_REMEMBERED_MAX)
  const usersByTokenHash = new Map(tokens.map((record) => [hashOf(record.token), userOfToken(record)]))

  const authenticateToken = (token: string) => usersByTokenHash.get(hashOf(token))

  const identify = (clientCert: ClientCertificate): Identity => {
    const before = identities.get(clientCert)
    if (before) return before
    const { der, trusted } = clientCert
    const fingerprint = createHash('sha256').update(der).digest('hex')
    const reading = readings.get(fingerprint) ?? readCertificate(der, { fingerprint, ca, caKey })
    // Only ours: strangers could bring any number of others.
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

/** What a certificate says for as long as it is valid, or why it says nothing. */
type Reading = { user: UserInfo; notBeforeMs: number; notAfterMs: number } | { because: string }

/** And what the handshake of this connection made of it. */
type Identity = (Exclude<Reading, { because: string }> & { trusted: boolean }) | { because: string }

/** The time is checked at every request: connections, and sessions that resume without a handshake, can outlive it. */
function byIdentity(identity: Identity, nowMs: number): Authentication {
  if ('because' in identity) return refused(identity.because)
  const { user, notBeforeMs, notAfterMs, trusted } = identity
  const of = `the client certificate of "${user.name}"`
  if (nowMs < notBeforeMs) return refused(`${of} is not valid before ${new Date(notBeforeMs).toISOString()}`)
  if (nowMs > notAfterMs) return refused(`${of} expired at ${new Date(notAfterMs).toISOString()}`)
  if (!trusted) return refused(`${of} is not meant for clients, or the handshake found it invalid`)
  return { is: 'known', user }
}

const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id'

/** Subject CN is the user, each O a group. Our CA is asked here again, in case the server was told to trust others. */
function readCertificate(
  der: Uint8Array,
  { fingerprint, ca, caKey }: { fingerprint: string; ca: X509Certificate; caKey: KeyObject },
): Reading {
  const certificate = new X509Certificate(der)
  const isOurs = certificate.checkIssued(ca) && certificate.verify(caKey)
  if (!isOurs) return { because: "the client certificate was not issued by this server's CA" }

  const subject = certificate.toLegacyObject().subject as unknown as Record<string, string | string[] | undefined>
  const name = listOf(subject.CN).at(-1)
  if (!name) return { because: 'the client certificate names no user: its subject has no CN' }
  const uids = listOf(subject[UID_ATTRIBUTE])
  if (uids.length > 1) return { because: 'the client certificate names more than one uid' }

  const user = withStandingGroup({
    name,
    groups: listOf(subject.O),
    ...(uids[0] && { uid: uids[0] }),
    extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
  })
  return { user, notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) }
}

function byAuthorization(header: string, authenticateToken: Authenticator['authenticateToken']): Authentication {
  const [scheme = '', token] = header.trim().split(/ +/)
  if (scheme.toLowerCase() !== 'bearer') return refused('only bearer tokens are accepted in the Authorization header')
  if (!token) return refused('the Authorization header carries an empty bearer token')
  const user = authenticateToken(token)
  return user ? { is: 'known', user } : refused('the bearer token is not known')
}

const userOfToken = ({ user, uid, groups }: TokenRecord): UserInfo =>
  withStandingGroup({ name: user, groups, ...(uid && { uid }) })

/** Tokens are looked up by their hash, so the time a look-up takes says nothing about how much of a guess was right. */
const hashOf = (token: string) => createHash('sha256').update(token).digest('base64')

const refused = (because: string): Authentication => ({ is: 'refused', refusal: unauthorized(because) })

const listOf = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]
