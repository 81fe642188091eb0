// Authenticates the bearer tokens of tokens.json.
import { createHash } from 'node:crypto'
import type { TokenAuthenticator } from './token-authenticator.ts'
import type { TokenRecord } from './tokens.ts'
import { withAuthenticationGroup } from './user.ts'

export function staticTokenAuthenticator(records: readonly TokenRecord[]): TokenAuthenticator {
  const usersByTokenHash = new Map(
    records.map(({ token, user, uid, groups }) => [
      hashOf(token),
      withAuthenticationGroup({ name: user, groups, uid }),
    ]),
  )
  return (token) => {
    const user = usersByTokenHash.get(hashOf(token))
    return user && { user }
  }
}

/** Tokens are looked up by hash, so that the duration of a lookup reveals nothing about a token. */
const hashOf = (token: string) => createHash('sha256').update(token).digest('base64')
