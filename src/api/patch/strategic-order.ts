// The order of a list after a strategic merge. Items of the patch have the order of the patch; the others keep their
// relative order; the previous positions determine how the two interleave.

export interface MergedList<Item> {
  /** The items of the merged list, in any order. */
  readonly items: readonly Item[]
  /** Keys in the order of the patch. */
  readonly wanted: readonly unknown[]
  /** Keys in the previous order of the list. */
  readonly before: readonly unknown[]
  readonly keyOf: (item: Item) => unknown
}

// Each item that is not in the patch is placed before the first patch item that followed it before:
//   before           a b c d
//   wanted           d x a
//   not in the patch   b c       b and c preceded d
//   result           b c d x a
export function orderItems<Item>({ items, wanted, before, keyOf }: MergedList<Item>): Item[] {
  const wantedAt = positions(wanted)
  const beforeAt = positions(before)
  const ours = items.filter((item) => wantedAt.has(keyOf(item)))
  const others = items.filter((item) => !wantedAt.has(keyOf(item)))
  const at = (place: Map<unknown, number>, item: Item) => place.get(keyOf(item)) ?? Number.POSITIVE_INFINITY
  ours.sort((a, b) => at(wantedAt, a) - at(wantedAt, b))
  others.sort((a, b) => (at(beforeAt, a) === at(beforeAt, b) ? 0 : at(beforeAt, a) - at(beforeAt, b)))

  const ordered: Item[] = []
  let next = 0
  for (const other of others) {
    while (next < ours.length && !(at(beforeAt, other) < (beforeAt.get(keyOf(ours[next]!)) ?? -1))) {
      ordered.push(ours[next++]!)
    }
    ordered.push(other)
  }
  return [...ordered, ...ours.slice(next)]
}

/** The first position of each key. */
function positions(keys: readonly unknown[]): Map<unknown, number> {
  const found = new Map<unknown, number>()
  keys.forEach((key, i) => {
    if (!found.has(key)) found.set(key, i)
  })
  return found
}
