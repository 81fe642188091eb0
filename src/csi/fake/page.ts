// Paginates lists. A token is the order of the first item of the next page, so it stays valid if items are added or deleted.
import { fail } from './model.ts'

export function paginate<T extends { readonly order: number }>(
  allItems: readonly T[],
  lastOrder: number,
  { maxEntries, startingToken }: { readonly maxEntries: number; readonly startingToken: string },
): { readonly items: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) fail('INVALID_ARGUMENT', 'max_entries is negative')
  const firstOrder = startingToken === '' ? 0 : Number(startingToken)
  if (startingToken !== '' && (!/^\d+$/.test(startingToken) || firstOrder > lastOrder)) {
    fail('ABORTED', `starting_token "${startingToken}" is not valid; start with the first page`)
  }
  const remainingItems = allItems.filter(({ order }) => order >= firstOrder).sort((a, b) => a.order - b.order)
  const items = maxEntries === 0 ? remainingItems : remainingItems.slice(0, maxEntries)
  return { items, nextToken: items.length < remainingItems.length ? String(remainingItems[items.length]!.order) : '' }
}
