// Formats a list of names for a message.

const SHOWN_NAMES_MAX = 5

/** Returns the first names, and the number of the others: `a, b, c, d, e and 7 more`. */
export function formatNames(names: readonly string[]): string {
  const shownNames = names.slice(0, SHOWN_NAMES_MAX).join(', ')
  const omittedCount = names.length - SHOWN_NAMES_MAX
  return omittedCount > 0 ? `${shownNames} and ${omittedCount} more` : shownNames
}
