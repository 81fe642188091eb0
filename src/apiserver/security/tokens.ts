// The format of tokens.json, which lists the bearer tokens and their users. Pure: text to records and back.
// An added or removed entry takes effect at the next start.
import { unusableFile } from './errors.ts'

export interface TokenRecord {
  token: string
  user: string
  uid?: string
  groups: readonly string[]
}

export const formatTokens = (tokens: readonly TokenRecord[]) => `${JSON.stringify({ tokens }, null, 2)}\n`

/** `file` is for error messages. No message contains a token. */
export function parseTokens(text: string, file: string): TokenRecord[] {
  const unusable = (why: string) =>
    unusableFile({ file, why, remedy: 'Correct it, or remove it and start again to create new tokens.' })

  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw unusable('it is not JSON')
  }
  const tokens = (document as { tokens?: unknown } | null)?.tokens
  if (!Array.isArray(tokens)) throw unusable('it has no list "tokens"')

  const seen = new Set<string>()
  for (const [index, record] of tokens.entries()) {
    if (!isTokenRecord(record)) throw unusable(`tokens[${index}] must have a token, a user and a list of groups`)
    if (seen.has(record.token)) throw unusable(`tokens[${index}] repeats an earlier token`)
    seen.add(record.token)
  }
  return tokens
}

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
