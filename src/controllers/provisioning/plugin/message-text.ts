// Formats text from classes and plugins for messages: quotes and truncates it.
import { inspect } from 'node:util'

const QUOTED_NAMES_MAX = 8 // a longer list ends with the number of omitted names
const TEXT_LENGTH_MAX = 80 // longer text is truncated

export function quoteNames(names: readonly string[]): string {
  const quotedNames = names.slice(0, QUOTED_NAMES_MAX).map((name) => JSON.stringify(truncate(name)))
  const omittedCount = names.length - quotedNames.length
  return omittedCount > 0 ? `${quotedNames.join(', ')} and ${omittedCount} more` : quotedNames.join(', ')
}

export const truncate = (text: string): string =>
  text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text

/** Returns the message of a thrown value, which need not be an Error. */
export function errorMessageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || `the plugin failed without a message (${thrown.name})`
  if (typeof thrown === 'string' && thrown !== '') return thrown
  return `the plugin failed without a message (${truncate(inspect(thrown, { depth: 1, breakLength: Number.POSITIVE_INFINITY }))} was thrown instead of an Error)`
}
