// Maps a list with an async function and bounded concurrency.

/** Returns the results in the order of the items. Rejects with the first failure. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  concurrency: number,
  mapItem: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let nextIndex = 0
  const runWorker = async () => {
    while (nextIndex < items.length) {
      const index = nextIndex++
      results[index] = await mapItem(items[index]!)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, runWorker))
  return results
}
