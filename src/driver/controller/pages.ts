// Lists in pages. A token is the last id given, so a list goes on correctly when things come and go meanwhile.
import { badToken, invalid } from '../errors.ts'

export interface PageRequest {
  readonly maxEntries: number
  readonly startingToken: string
}

/** `items` in the order of their ids. */
export function pageOf<T extends { readonly id: string }>(
  items: readonly T[],
  { maxEntries, startingToken }: PageRequest,
  isId: (text: string) => boolean,
): { readonly items: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) throw invalid('max_entries must not be negative.')
  if (startingToken !== '' && !isId(startingToken)) throw badToken(startingToken)
  const rest = startingToken === '' ? items : items.filter((item) => item.id > startingToken)
  const page = maxEntries === 0 ? rest : rest.slice(0, maxEntries)
  return { items: page, nextToken: page.length < rest.length ? (page.at(-1)?.id ?? '') : '' }
}
