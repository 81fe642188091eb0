// The contract of all authenticators of bearer tokens, and an authenticator that tries several of them in order.
import type { UserInfo } from './user.ts'

/** The user of a token, or the reason why a known token is not valid. */
export type TokenAuthentication =
  | {
      readonly user: UserInfo
      /** The requested audiences that the token is valid for. Undefined for a token that is valid for the API server. */
      readonly audiences?: readonly string[]
    }
  | { readonly rejection: string }

/**
 * Returns undefined for a token of another authenticator and for a forged one. A rejection is sent to the client, so it must not
 * reveal anything that the holder of the token does not already know. The token must have one of `audiences`.
 */
export type TokenAuthenticator = (token: string, audiences: readonly string[]) => TokenAuthentication | undefined

/** Tries the authenticators in order. The first one that recognizes the token decides. */
export function firstTokenAuthenticator(
  authenticators: readonly TokenAuthenticator[],
  apiAudiences: readonly string[],
): (token: string, audiences?: readonly string[]) => TokenAuthentication | undefined {
  return (token, audiences = apiAudiences) => {
    for (const authenticate of authenticators) {
      const authentication = authenticate(token, audiences)
      if (!authentication) continue
      if ('rejection' in authentication || authentication.audiences) return authentication
      const acceptedAudiences = audiences.filter((audience) => apiAudiences.includes(audience))
      if (acceptedAudiences.length > 0 || audiences === apiAudiences)
        return { ...authentication, audiences: acceptedAudiences }
      return { rejection: 'the bearer token is not valid for the requested audiences' }
    }
    return undefined
  }
}
