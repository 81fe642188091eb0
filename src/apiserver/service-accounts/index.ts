// Public exports of ServiceAccount tokens, and their wiring: the issuer, the authenticator and the discovery of the issuer
// share the keys and the index of bound objects.
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'
import type { ApiResponse } from '../http/messages.ts'
import type { TokenAuthenticator } from '../security/token-authenticator.ts'
import { ACCOUNTS_GROUP, accountsGroupOf, accountUserName, type UserInfo } from '../security/user.ts'
import { createAccountAuthenticator } from './account-authenticator.ts'
import { createBoundObjects } from './bound-objects.ts'
import { createIssuerDiscovery } from './issuer-discovery.ts'
import { signJwt } from './jwt.ts'
import { type SecretTokenSubject, secretTokenClaims } from './secret-token.ts'
import type { TokenClaims, TokenSubject } from './token-claims.ts'
import type { TokenKeys } from './token-keys.ts'

export { ISSUER_PATHS } from './issuer-discovery.ts'
export { serviceAccountAdmission } from './service-account-admission.ts'
export type { TokenSubject } from './token-claims.ts'
export { loadTokenKeys, type TokenKeys } from './token-keys.ts'

export interface AccountTokensOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly keys: TokenKeys
  readonly issuer: string
  /** The longest lifetime of a token. A longer request is shortened. */
  readonly lifetimeSecondsMax: number
  /** Returns this server's URL, for the discovery of the issuer. */
  serverUrl(): string
}

export interface IssueRequest {
  readonly subject: TokenSubject
  readonly audiences: readonly string[]
  readonly lifetimeSeconds: number
}

export interface AccountTokens {
  readonly authenticator: TokenAuthenticator
  /** The audiences of tokens for the API server. */
  readonly apiAudiences: readonly string[]
  readonly lifetimeSecondsMax: number
  /** Signs a token for objects that were read from the store. Waits up to a second until this server accepts the token. */
  issue(request: IssueRequest): Promise<{ readonly token: string; readonly expiresAtMs: number }>
  /** Signs a token for a Secret of type kubernetes.io/service-account-token. */
  createSecretToken(subject: SecretTokenSubject): string
  /** Handles the issuer's paths. Returns undefined for all others. */
  handleDiscovery(path: string): ApiResponse | undefined
  /** Calls the listener after tokens may have become invalid. There is one listener. */
  onRevocation(listener: RevocationListener): void
  /** Replaces the keys after their files have changed. */
  setKeys(keys: TokenKeys): void
  /** Loads the index of bound objects and follows them. Before it is loaded, no ServiceAccount token is accepted. */
  start(signal: AbortSignal): Promise<void>
}

/** `isAffected` returns false for users whose tokens are still valid, and true for users whose tokens must be checked again. */
export type RevocationListener = (isAffected: (user: UserInfo) => boolean) => void

export function createAccountTokens(options: AccountTokensOptions): AccountTokens {
  const { clock, issuer, lifetimeSecondsMax, serverUrl } = options
  let currentKeys = options.keys
  const keys = () => currentKeys
  const boundObjects = createBoundObjects(options)
  let notifyRevocation: RevocationListener = () => {}
  boundObjects.onEnd((namespace) => {
    const group = namespace === undefined ? ACCOUNTS_GROUP : accountsGroupOf(namespace)
    notifyRevocation(({ groups }) => groups.includes(group))
  })
  return {
    authenticator: createAccountAuthenticator({ keys, issuer, boundObjects, clock }),
    apiAudiences: [issuer],
    lifetimeSecondsMax,
    async issue({ subject, audiences, lifetimeSeconds }) {
      const nowSeconds = Math.floor(clock.nowMs() / 1_000)
      const claims: TokenClaims = {
        aud: audiences,
        exp: nowSeconds + lifetimeSeconds,
        iat: nowSeconds,
        iss: issuer,
        jti: randomUUID(),
        'kubernetes.io': subject,
        nbf: nowSeconds,
        sub: accountUserName(subject.namespace, subject.serviceaccount.name),
      }
      await boundObjects.waitUntilIndexed(subject)
      return { token: signJwt(claims, currentKeys.signingKey), expiresAtMs: claims.exp * 1_000 }
    },
    createSecretToken: (subject) => signJwt(secretTokenClaims(subject), currentKeys.signingKey),
    handleDiscovery: createIssuerDiscovery({ issuer, serverUrl, keys }),
    onRevocation: (listener) => {
      notifyRevocation = listener
    },
    setKeys: (newKeys) => {
      currentKeys = newKeys
      notifyRevocation(({ groups }) => groups.includes(ACCOUNTS_GROUP))
    },
    start: boundObjects.follow,
  }
}
