// Maps a list with an async function, a bounded number of items at a time.

/** Results in the order of the items. Rejects with the first failure. */
export async function mapConcurrently<T, R>(
  all: readonly T[],
  lanes: number,
  one: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async () => {
    while (next < all.length) {
      const index = next++
      results[index] = await one(all[index]!, index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(lanes, all.length) }, lane))
  return results
}
