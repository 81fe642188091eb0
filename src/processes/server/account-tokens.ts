// Sets up ServiceAccount tokens for a server from its flags and the keys in its pki directory. Reloads the keys when their files
// change.
import { join } from 'node:path'
import { type AccountTokens, createAccountTokens, loadTokenKeys } from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import { watchFiles } from '../../base/watch-files.ts'
import type { Store } from '../../store/index.ts'

export interface AccountTokenSettings {
  /** Issuer of the tokens, and the audience of tokens for the API server. */
  readonly issuer: string
  readonly lifetimeMsMax: number
}

export interface OpenAccountTokensOptions extends AccountTokenSettings {
  readonly pkiDir: string
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  serverUrl(): string
}

export async function openAccountTokens(options: OpenAccountTokensOptions): Promise<AccountTokens> {
  const { pkiDir, lifetimeMsMax, issuer, store, clock, log, serverUrl } = options
  const loadKeys = () => loadTokenKeys({ dir: pkiDir, tokenLifetimeMsMax: lifetimeMsMax, clock })
  const keys = await loadKeys()
  const lifetimeSecondsMax = Math.floor(lifetimeMsMax / 1_000)
  const accountTokens = createAccountTokens({ store, clock, log, keys, issuer, lifetimeSecondsMax, serverUrl })
  return {
    ...accountTokens,
    async start(signal) {
      await accountTokens.start(signal)
      const stop = await watchFiles({
        paths: ['service-account.key', 'service-account.pub'].map((file) => join(pkiDir, file)),
        clock,
        onChange: async () => {
          try {
            accountTokens.setKeys(await loadKeys())
            log.info({}, 'reloaded the keys for ServiceAccount tokens')
          } catch (error) {
            log.error(
              { reason: (error as Error).message },
              'cannot load the keys for ServiceAccount tokens; keeping the old ones',
            )
          }
        },
      })
      signal.addEventListener('abort', stop, { once: true })
    },
  }
}

const LIFETIME_MS_MIN = 60 * 60 * 1_000
const LIFETIME_MS_MAX = 2 ** 32 * 1_000

/** Throws UsageError for an invalid issuer or a lifetime that is out of range. */
export function checkAccountTokenSettings(settings: AccountTokenSettings): AccountTokenSettings {
  const { issuer, lifetimeMsMax } = settings
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  if (url?.protocol !== 'https:' || url.search !== '' || url.hash !== '') {
    throw new UsageError(
      `--service-account-issuer ${JSON.stringify(issuer)}: expected an https URL without query or fragment`,
    )
  }
  if (lifetimeMsMax < LIFETIME_MS_MIN || lifetimeMsMax > LIFETIME_MS_MAX) {
    throw new UsageError('--service-account-max-token-expiration: expected a duration from 1h to 2^32 seconds')
  }
  return settings
}
