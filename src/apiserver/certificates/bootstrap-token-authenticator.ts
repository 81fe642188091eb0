// Authenticates bootstrap tokens from an index of the Secrets of kube-system, which is updated by a watch.
import { timingSafeEqual } from 'node:crypto'
import {
  BOOTSTRAP_TOKEN_NAMESPACE,
  type BootstrapToken,
  parseTokenSecret,
  secretNameOf,
  splitToken,
} from '../../api/kinds/secret/bootstrap-token-secret.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import type { Secret } from '../../api/kinds/secret/secret-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'
import { followStore } from '../follow-store.ts'
import { collectionPrefix } from '../keys.ts'
import type { StoredObjects } from '../objects/stored-object.ts'
import type { TokenAuthenticator } from '../security/token-authenticator.ts'
import { withAuthenticationGroup } from '../security/user.ts'
import { userOfBootstrapToken } from './bootstrap-token-user.ts'

export interface BootstrapTokens {
  readonly authenticate: TokenAuthenticator
  /** Loads the tokens and follows them until the signal is aborted. */
  start(options: FollowTokensOptions): Promise<void>
}

export interface FollowTokensOptions {
  readonly objects: StoredObjects
  readonly signal: AbortSignal
  /** Called after a token was changed or deleted. */
  onRevocation?(): void
}

export function createBootstrapTokens({
  store,
  clock,
  log,
}: {
  store: Store
  clock: Clock
  log: Logger
}): BootstrapTokens {
  const prefix = collectionPrefix(secretKind, BOOTSTRAP_TOKEN_NAMESPACE)
  const tokens = new Map<string, BootstrapToken>()
  return {
    authenticate(text) {
      const parts = splitToken(text)
      const token = parts && tokens.get(secretNameOf(parts.id))
      if (!token?.canAuthenticate || !isSame(token.secret, parts!.secret)) return undefined
      if (clock.nowMs() >= token.expiresAtMs) {
        const expiredAt = new Date(token.expiresAtMs).toISOString()
        return { rejection: `the bootstrap token "${token.id}" expired at ${expiredAt}` }
      }
      return { user: withAuthenticationGroup(userOfBootstrapToken(token)) }
    },
    start: ({ objects, signal, onRevocation }) =>
      followStore({
        store,
        prefix,
        description: 'bootstrap tokens',
        clock,
        log,
        signal,
        onEntry(key, entry) {
          const name = key.slice(prefix.length)
          if (!name.startsWith(secretNameOf(''))) return
          const token = entry && parseTokenSecret(objects.decode(entry) as Secret)
          const isKnown = tokens.has(name)
          if (token) tokens.set(name, token)
          else tokens.delete(name)
          if (isKnown) onRevocation?.()
        },
      }),
  }
}

/** timingSafeEqual requires equal lengths: both texts have the length of a token secret. */
const isSame = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a), Buffer.from(b))
