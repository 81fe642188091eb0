// Publishes the issuer and the public keys of ServiceAccount tokens, with which other services verify tokens by OpenID Connect.
import { type ApiResponse, bytesResponse } from '../http/messages.ts'
import type { TokenKeys } from './token-keys.ts'

export const ISSUER_PATHS = ['/.well-known/openid-configuration', '/openid/v1/jwks'] as const
const [CONFIGURATION_PATH, JWKS_PATH] = ISSUER_PATHS

const CACHE_HEADERS = { 'cache-control': 'public, max-age=3600' }

export interface IssuerDiscoveryOptions {
  readonly issuer: string
  /** Returns this server's URL. */
  serverUrl(): string
  keys(): TokenKeys
}

/** Returns a function that handles the two paths and returns undefined for all others. */
export function createIssuerDiscovery({ issuer, serverUrl, keys }: IssuerDiscoveryOptions) {
  const json = (value: object, contentType: string) =>
    bytesResponse(200, Buffer.from(JSON.stringify(value)), { 'content-type': contentType, ...CACHE_HEADERS })
  return (path: string): ApiResponse | undefined => {
    if (path === CONFIGURATION_PATH) {
      return json(
        {
          issuer,
          jwks_uri: `${serverUrl()}${JWKS_PATH}`,
          response_types_supported: ['id_token'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: [
            ...new Set([...keys().verificationKeys.values()].map(({ algorithm }) => algorithm)),
          ],
        },
        'application/json',
      )
    }
    if (path !== JWKS_PATH) return undefined
    const jwks = [...keys().verificationKeys.values()].map(({ kid, algorithm, publicKey }) => ({
      use: 'sig',
      kid,
      alg: algorithm,
      ...publicKey.export({ format: 'jwk' }),
    }))
    return json({ keys: jwks }, 'application/jwk-set+json')
  }
}
