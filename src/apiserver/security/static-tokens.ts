// Authenticates the bearer tokens of tokens.json.
import { createHash } from 'node:crypto'
import type { TokenAuthenticator } from './token-authenticator.ts'
import type { TokenRecord } from './tokens.ts'
import { withAuthenticationGroup } from './user.ts'

export interface StaticTokens {
  readonly authenticator: TokenAuthenticator
  /** Replaces all tokens. */
  set(records: readonly TokenRecord[]): void
}

export function createStaticTokens(records: readonly TokenRecord[]): StaticTokens {
  let usersByTokenHash = indexByHash(records)
  return {
    authenticator: (token) => {
      const user = usersByTokenHash.get(hashOf(token))
      return user && { user }
    },
    set(newRecords) {
      usersByTokenHash = indexByHash(newRecords)
    },
  }
}

export const staticTokenAuthenticator = (records: readonly TokenRecord[]): TokenAuthenticator =>
  createStaticTokens(records).authenticator

const indexByHash = (records: readonly TokenRecord[]) =>
  new Map(
    records.map(({ token, user, uid, groups }) => [
      hashOf(token),
      withAuthenticationGroup({ name: user, groups, uid }),
    ]),
  )

/** Tokens are looked up by hash, so that the duration of a lookup reveals nothing about a token. */
const hashOf = (token: string) => createHash('sha256').update(token).digest('base64')
