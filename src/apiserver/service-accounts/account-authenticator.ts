// Authenticates ServiceAccount tokens: signature, issuer, audience and time, and that the account and the bound object still
// exist. A token in a Secret has neither audience nor expiration, but the Secret must contain it. A token with a valid
// signature and form is cached; its key, audience, time and objects are checked on every request.
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { TokenAuthentication, TokenAuthenticator } from '../security/token-authenticator.ts'
import { accountUserName, type UserInfo } from '../security/user.ts'
import type { BoundObjects } from './bound-objects.ts'
import { type VerifiedJwt, verifyJwt } from './jwt.ts'
import { hashToken, type SecretTokenSubject, subjectOfSecretToken, userOfSecretToken } from './secret-token.ts'
import { type ObjectClaim, type TokenClaims, type TokenSubject, userOfClaims } from './token-claims.ts'
import type { TokenKeys } from './token-keys.ts'

const CACHED_TOKENS_MAX = 10_000
/** Tolerated difference between the clocks of servers. */
const CLOCK_LEEWAY_SECONDS = 60

export interface AccountAuthenticatorDeps {
  /** Returns the current keys. */
  keys(): TokenKeys
  readonly issuer: string
  readonly boundObjects: Pick<BoundObjects, 'exist' | 'secretHasToken'>
  readonly clock: Clock
}

/** A token with a valid signature: one that was requested, or one of a Secret. */
type VerifiedToken = { readonly kid: string; readonly user: UserInfo } & (
  | { readonly claims: TokenClaims }
  | { readonly secretToken: SecretTokenSubject }
)

export function createAccountAuthenticator(deps: AccountAuthenticatorDeps): TokenAuthenticator {
  const { keys, issuer, boundObjects, clock } = deps
  const verifiedTokens = new LruCache<string, VerifiedToken>(CACHED_TOKENS_MAX)

  function verify(token: string, hash: string): VerifiedToken | undefined {
    const cachedToken = verifiedTokens.get(hash)
    if (cachedToken) return keys().verificationKeys.has(cachedToken.kid) ? cachedToken : undefined
    const verifiedToken = verifyJwt(token, (kid) => keys().verificationKeys.get(kid))
    const result = verifiedToken && readClaims(verifiedToken)
    if (result) verifiedTokens.set(hash, result)
    return result
  }

  function readClaims({ claims, kid }: VerifiedJwt): VerifiedToken | undefined {
    const secretToken = subjectOfSecretToken(claims)
    if (secretToken) return { kid, secretToken, user: userOfSecretToken(secretToken) }
    if (claims.iss !== issuer || !isTokenClaims(claims)) return undefined
    return { kid, claims, user: userOfClaims(claims) }
  }

  return (token, audiences): TokenAuthentication | undefined => {
    if (!hasJwtForm(token)) return undefined
    const hash = hashToken(token)
    const verifiedToken = verify(token, hash)
    if (!verifiedToken) return undefined
    const { user } = verifiedToken
    const reject = (message: string) => ({ rejection: `the token of ${user.name} ${message}` })
    if ('secretToken' in verifiedToken) {
      // Such a token is for the API server, although it names no audience.
      const acceptedAudiences = audiences.filter((audience) => audience === issuer)
      if (acceptedAudiences.length === 0) return reject('is for other audiences')
      if (boundObjects.secretHasToken(verifiedToken.secretToken, hash)) return { user, audiences: acceptedAudiences }
      return reject(
        'is no longer valid: the account or the Secret was deleted, or the Secret has another token or one that was invalidated',
      )
    }
    const { claims } = verifiedToken
    const nowMs = clock.nowMs()
    if (nowMs > (claims.exp + CLOCK_LEEWAY_SECONDS) * 1_000) {
      return reject(`expired at ${new Date(claims.exp * 1_000).toISOString()}`)
    }
    if (nowMs < (claims.nbf - CLOCK_LEEWAY_SECONDS) * 1_000) return reject('is not valid yet')
    const acceptedAudiences = audiences.filter((audience) => claims.aud.includes(audience))
    if (acceptedAudiences.length === 0) return reject('is for other audiences')
    if (!boundObjects.exist(claims['kubernetes.io'], nowMs)) {
      return reject('is no longer valid: the account, or the object that the token is bound to, was deleted')
    }
    return { user, audiences: acceptedAudiences }
  }
}

/** Whether the token may be a JWT, so that other tokens are not parsed. */
const hasJwtForm = (token: string): boolean => token.startsWith('eyJ')

/** Checks the form, because an earlier version or another program with the same key may have signed the token. */
function isTokenClaims(value: object): value is TokenClaims {
  const { sub, aud, exp, nbf, jti, 'kubernetes.io': subject } = value as Partial<TokenClaims>
  return (
    Array.isArray(aud) &&
    aud.every((audience) => typeof audience === 'string') &&
    [exp, nbf].every((seconds) => typeof seconds === 'number') &&
    typeof jti === 'string' &&
    isTokenSubject(subject) &&
    sub === accountUserName(subject.namespace, subject.serviceaccount.name)
  )
}

function isTokenSubject(value: unknown): value is TokenSubject {
  const { namespace, serviceaccount, pod, secret, node } = (value ?? {}) as Partial<TokenSubject>
  return (
    typeof namespace === 'string' &&
    isObjectClaim(serviceaccount) &&
    [pod, secret].every((claim) => claim === undefined || isObjectClaim(claim)) &&
    (node === undefined || typeof node.name === 'string')
  )
}

const isObjectClaim = (claim: unknown): claim is ObjectClaim =>
  typeof (claim as ObjectClaim | undefined)?.name === 'string' && typeof (claim as ObjectClaim).uid === 'string'
