// Pagination of lists. A token is the order of the next page's first item, so it stays valid when items are added or deleted.
import { fail } from './model.ts'

export function pageOf<T extends { readonly order: number }>(
  all: readonly T[],
  lastOrder: number,
  { maxEntries, startingToken }: { readonly maxEntries: number; readonly startingToken: string },
): { readonly items: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) fail('INVALID_ARGUMENT', 'max_entries is negative')
  const from = startingToken === '' ? 0 : Number(startingToken)
  if (startingToken !== '' && (!/^\d+$/.test(startingToken) || from > lastOrder)) {
    fail('ABORTED', `starting_token "${startingToken}" is not valid; start with the first page`)
  }
  const rest = all.filter(({ order }) => order >= from).sort((a, b) => a.order - b.order)
  const items = maxEntries === 0 ? rest : rest.slice(0, maxEntries)
  return { items, nextToken: items.length < rest.length ? String(rest[items.length]!.order) : '' }
}
