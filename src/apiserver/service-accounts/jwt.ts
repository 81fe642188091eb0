// Signs and verifies JSON Web Tokens with ES256 and RS256. The key decides the algorithm: a token with another algorithm in its
// header, such as `none` or HS256 keyed with a public key, is not valid.
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

export type JwtAlgorithm = 'ES256' | 'RS256'

/** A public key that verifies tokens, with the ID that the header of a token names. */
export interface VerificationKey {
  readonly kid: string
  readonly algorithm: JwtAlgorithm
  readonly publicKey: KeyObject
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject
}

/** Returns undefined if the key is neither an ECDSA P-256 key nor an RSA key of at least 2048 bits. */
export function verificationKeyOf(key: KeyObject): VerificationKey | undefined {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const algorithm = algorithmOf(publicKey)
  if (!algorithm) return undefined
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  return { kid: createHash('sha256').update(spki).digest('base64url'), algorithm, publicKey }
}

export function signingKeyOf(privateKey: KeyObject): SigningKey | undefined {
  const key = verificationKeyOf(privateKey)
  return key && { ...key, privateKey }
}

const RSA_BITS_MIN = 2_048

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): JwtAlgorithm | undefined {
  const { namedCurve, modulusLength = 0 } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256'
  return asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS_MIN ? 'RS256' : undefined
}

export function signJwt(claims: object, { kid, algorithm, privateKey }: SigningKey): string {
  const signingInput = `${encode({ alg: algorithm, kid })}.${encode(claims)}`
  return `${signingInput}.${sign('sha256', Buffer.from(signingInput), signatureKey(privateKey)).toString('base64url')}`
}

export interface VerifiedJwt {
  readonly claims: Readonly<Record<string, unknown>>
  /** The ID of the key that signed the token. */
  readonly kid: string
}

/** Returns the claims of a token, or undefined if the key that its header names is unknown or has not signed it. */
export function verifyJwt(
  token: string,
  findKey: (kid: string) => VerificationKey | undefined,
): VerifiedJwt | undefined {
  const [header = '', payload = '', signature = '', ...extraParts] = token.split('.')
  if (extraParts.length > 0 || signature === '') return undefined
  const { alg, kid, crit } = decode(header) ?? {}
  const key = typeof kid === 'string' ? findKey(kid) : undefined
  if (!key || alg !== key.algorithm || crit !== undefined) return undefined
  const signingInput = Buffer.from(`${header}.${payload}`)
  if (!verify('sha256', signingInput, signatureKey(key.publicKey), Buffer.from(signature, 'base64url')))
    return undefined
  const claims = decode(payload)
  return claims && { claims, kid: key.kid }
}

/** ES256 signatures are the two numbers side by side, not in DER. RSA ignores the encoding. */
const signatureKey = (key: KeyObject) => ({ key, dsaEncoding: 'ieee-p1363' as const })

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function decode(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
