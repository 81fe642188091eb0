// The search box of a table: all words must occur; `-word` excludes; `key:value` searches one column.

interface Searchable {
  /** Lower case. */
  readonly searchText: string
}

export type Matcher<R> = (row: R) => boolean

/** Returns a matcher for the text. `columns` gives the values that `key:value` searches, by key. */
export function createMatcher<R extends Searchable>(
  text: string,
  columns: Readonly<Record<string, (row: R) => string | undefined>> = {},
): Matcher<R> {
  const terms = text
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((term) => createTerm(term, columns))
  return (row) => terms.every((matches) => matches(row))
}

function createTerm<R extends Searchable>(
  term: string,
  columns: Readonly<Record<string, (row: R) => string | undefined>>,
): Matcher<R> {
  if (term.startsWith('-') && term.length > 1) {
    const matches = createTerm(term.slice(1), columns)
    return (row) => !matches(row)
  }
  const [, key = '', value = ''] = /^([a-z]+):(.*)$/.exec(term) ?? []
  const column = Object.hasOwn(columns, key) ? columns[key] : undefined
  if (column) return (row) => (column(row) ?? '').toLowerCase().includes(value)
  return (row) => row.searchText.includes(term)
}
