// Parses and formats tokens.json, which lists the bearer tokens and their users.
import { unusableFileError } from './errors.ts'

export interface TokenRecord {
  token: string
  user: string
  uid?: string
  groups: readonly string[]
}

export const formatTokens = (tokens: readonly TokenRecord[]) => `${JSON.stringify({ tokens }, null, 2)}\n`

/** Parses tokens.json. Error messages contain the path `file`, but no token. */
export function parseTokens(content: string, file: string): TokenRecord[] {
  const unusableError = (reason: string) =>
    unusableFileError({ file, reason, remedy: 'Correct it, or remove it and start again to create new tokens.' })

  let document: unknown
  try {
    document = JSON.parse(content)
  } catch {
    throw unusableError('it is not JSON')
  }
  const tokens = (document as { tokens?: unknown } | null)?.tokens
  if (!Array.isArray(tokens)) throw unusableError('it has no list "tokens"')

  const seenTokens = new Set<string>()
  for (const [index, record] of tokens.entries()) {
    if (!isTokenRecord(record)) throw unusableError(`tokens[${index}] must have a token, a user and a list of groups`)
    if (seenTokens.has(record.token)) throw unusableError(`tokens[${index}] repeats an earlier token`)
    if (bitsOf(record.token) < TOKEN_BITS_MIN) {
      const description = `tokens[${index}] of user ${JSON.stringify(record.user)}`
      throw unusableError(
        `${description} has less than ${TOKEN_BITS_MIN} bits; use at least 22 random characters, or 32 hexadecimal ones`,
      )
    }
    seenTokens.add(record.token)
  }
  return tokens
}

const TOKEN_BITS_MIN = 128

/** Returns the number of random bits that a hexadecimal or base64 token of this length can have. */
const bitsOf = (token: string): number => token.length * (/^[0-9a-f]+$/i.test(token) ? 4 : 6)

function isTokenRecord(value: unknown): value is TokenRecord {
  const { token, user, uid, groups } = (value ?? {}) as Record<string, unknown>
  return (
    isNonEmptyString(token) &&
    isNonEmptyString(user) &&
    (uid === undefined || isNonEmptyString(uid)) &&
    Array.isArray(groups) &&
    groups.every(isNonEmptyString)
  )
}

const isNonEmptyString = (value: unknown) => typeof value === 'string' && value !== ''
