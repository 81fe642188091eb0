// Names and texts of other people inside our messages: quoted, and never so many or so long that the rest is lost.
const NAMES_SHOWN_MAX = 8 // of more, the first ones and a count
const TEXT_SHOWN_MAX = 80 // characters of one

export function quoted(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map((name) => JSON.stringify(shortened(name)))
  const others = names.length - shown.length
  return others > 0 ? `${shown.join(', ')} and ${others} more` : shown.join(', ')
}

export const shortened = (text: string): string =>
  text.length > TEXT_SHOWN_MAX ? `${text.slice(0, TEXT_SHOWN_MAX)}…` : text

/** The text without any of the secrets; those inside others go with them, so the longest go first. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length)
  return longestFirst.reduce((clean, secret) => clean.replaceAll(secret, '(secret)'), text)
}
