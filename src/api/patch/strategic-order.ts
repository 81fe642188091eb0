// Sorts a list after a strategic merge. Items of the patch have the order of the patch, other items keep their relative
// order, and the previous positions determine how the two interleave.

export interface MergedList<Item> {
  /** The items of the merged list, in any order. */
  readonly items: readonly Item[]
  /** Keys in the order of the patch. */
  readonly patchKeys: readonly unknown[]
  /** Keys in the previous order of the list. */
  readonly previousKeys: readonly unknown[]
  readonly keyOf: (item: Item) => unknown
}

// Each item that is not in the patch is placed before the first item of the patch that it preceded:
//   previous order   a b c d
//   patch            d x a
//   other items        b c       b and c preceded d
//   result           b c d x a
export function orderItems<Item>({ items, patchKeys, previousKeys, keyOf }: MergedList<Item>): Item[] {
  const patchPositions = indexKeys(patchKeys)
  const previousPositions = indexKeys(previousKeys)
  const patchItems = items.filter((item) => patchPositions.has(keyOf(item)))
  const otherItems = items.filter((item) => !patchPositions.has(keyOf(item)))
  const positionOf = (item: Item, positions: Map<unknown, number>) =>
    positions.get(keyOf(item)) ?? Number.POSITIVE_INFINITY
  patchItems.sort((a, b) => positionOf(a, patchPositions) - positionOf(b, patchPositions))
  otherItems.sort((a, b) =>
    positionOf(a, previousPositions) === positionOf(b, previousPositions)
      ? 0
      : positionOf(a, previousPositions) - positionOf(b, previousPositions),
  )

  const orderedItems: Item[] = []
  let nextIndex = 0
  for (const item of otherItems) {
    while (
      nextIndex < patchItems.length &&
      !(positionOf(item, previousPositions) < (previousPositions.get(keyOf(patchItems[nextIndex]!)) ?? -1))
    ) {
      orderedItems.push(patchItems[nextIndex++]!)
    }
    orderedItems.push(item)
  }
  return [...orderedItems, ...patchItems.slice(nextIndex)]
}

/** Returns the first position of each key. */
function indexKeys(keys: readonly unknown[]): Map<unknown, number> {
  const positions = new Map<unknown, number>()
  keys.forEach((key, i) => {
    if (!positions.has(key)) positions.set(key, i)
  })
  return positions
}
