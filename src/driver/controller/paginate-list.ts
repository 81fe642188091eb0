// Paginates lists. A token is the previous page's last id, so it stays valid if items are added or deleted.
import { invalid, invalidToken } from '../errors.ts'

export interface PageRequest {
  readonly maxEntries: number
  readonly startingToken: string
}

/** Returns a page of the items, which must be sorted by id. */
export function paginate<T extends { readonly id: string }>(
  items: readonly T[],
  { maxEntries, startingToken }: PageRequest,
  isId: (text: string) => boolean,
): { readonly items: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) throw invalid('max_entries must not be negative.')
  if (startingToken !== '' && !isId(startingToken)) throw invalidToken(startingToken)
  const remainingItems = startingToken === '' ? items : items.filter((item) => item.id > startingToken)
  const page = maxEntries === 0 ? remainingItems : remainingItems.slice(0, maxEntries)
  return { items: page, nextToken: page.length < remainingItems.length ? (page.at(-1)?.id ?? '') : '' }
}
