// Estimates how many seats a list occupies, from the size of the last list of the same collection.
import { LruCache } from '../../base/lru-cache.ts'
import type { ResourceRequest } from '../http/route.ts'

/** A list occupies one more seat per this many bytes. */
const BYTES_PER_WIDTH = 100_000
/** Maximum number of collections whose size is cached. Beyond this, the least recently used one is evicted. */
const COLLECTIONS_MAX = 10_000

export interface ListWidths {
  /** Returns the width of a list, or of a watch that starts with a list. A list of unknown size has the maximum width. */
  widthOf(route: ResourceRequest, query: URLSearchParams): number
  /** Records the size of a list. Ignores lists with a selector. */
  recordBytes(route: ResourceRequest, query: URLSearchParams, bytes: number): void
}

export function createListWidths(): ListWidths {
  const bytesByCollection = new LruCache<string, number>(COLLECTIONS_MAX)
  return {
    widthOf(route, query) {
      const bytes = bytesByCollection.get(toCollectionKey(route, query))
      return bytes === undefined ? Number.POSITIVE_INFINITY : 1 + Math.floor(bytes / BYTES_PER_WIDTH)
    },
    recordBytes(route, query, bytes) {
      if (query.has('labelSelector') || query.has('fieldSelector')) return // the response is smaller than the work
      bytesByCollection.set(toCollectionKey(route, query), bytes)
    },
  }
}

/** Returns a key with the limit, because it changes the size of a list, and without selectors, which do not reduce the work. */
const toCollectionKey = ({ group, plural, namespace }: ResourceRequest, query: URLSearchParams): string =>
  `${group}/${plural}/${namespace}/${query.get('limit')?.slice(0, LIMIT_CHARACTERS_MAX) ?? ''}`
const LIMIT_CHARACTERS_MAX = 6
