// Quotes names and texts from classes and plugins in messages, limited in number and length.
import { inspect } from 'node:util'

const QUOTED_NAMES_MAX = 8 // of a longer list, the first names and a count
const TEXT_LENGTH_MAX = 80 // characters per text

export function quoteNames(names: readonly string[]): string {
  const quoted = names.slice(0, QUOTED_NAMES_MAX).map((name) => JSON.stringify(truncate(name)))
  const omitted = names.length - quoted.length
  return omitted > 0 ? `${quoted.join(', ')} and ${omitted} more` : quoted.join(', ')
}

export const truncate = (text: string): string =>
  text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text

/** Replaces all secrets, the longest first, because one secret may contain another. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length)
  return longestFirst.reduce((redacted, secret) => redacted.replaceAll(secret, '(secret)'), text)
}

/** The message of a thrown value; plugins may throw anything. */
export function errorMessageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || `it failed without a message (${thrown.name})`
  if (typeof thrown === 'string' && thrown !== '') return thrown
  return `it failed without a message (${truncate(inspect(thrown, { depth: 1, breakLength: Number.POSITIVE_INFINITY }))} was thrown instead of an Error)`
}
