// The existing objects of this producer by item. An object that was just created is included before its watch event
// arrives; otherwise the next reconcile would create a second one.
import type { Stored } from '../../api/kind.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { isOlder } from '../../runtime/reflector.ts'
import { type ItemKey, itemKeyOf } from './items.ts'

type Capacity = Readonly<Stored<CSIStorageCapacity>>

export interface Published {
  /** Oldest first; of several, the oldest is kept. */
  of(key: ItemKey): readonly Capacity[]
  /** How many of the given items have an object, and how many further objects exist. */
  count(isDesired: (key: ItemKey) => boolean): { readonly current: number; readonly obsolete: number }
  /** Adds the result of our own write. */
  wrote(object: Capacity): void
}

const BY_ITEM = 'capacity: item'

export function publishedObjects(cache: Cache<CSIStorageCapacity>): Published {
  cache.addIndex(BY_ITEM, itemKeysOf)
  /** Bounded by the objects created while the watch is behind. */
  const created = new Map<ItemKey, Capacity>()
  return {
    of(key) {
      const seen = cache.byIndex(BY_ITEM, key)
      const own = created.get(key)
      if (!own) return seen.length > 1 ? [...seen].sort(byAge) : seen
      if (!isOlder(cache.resourceVersion, own.metadata.resourceVersion)) created.delete(key)
      const isUnseen = created.has(key) && !seen.some(({ metadata }) => metadata.uid === own.metadata.uid)
      return (isUnseen ? [...seen, own] : [...seen]).sort(byAge)
    },
    count(isDesired) {
      const items = new Set<ItemKey>()
      for (const object of cache.list()) {
        const key = itemKeyOf(object)
        if (isDesired(key)) items.add(key)
      }
      return { current: items.size, obsolete: cache.size - items.size }
    },
    wrote(object) {
      cache.learn(object)
      if (!cache.get(keyOfObject(object))) created.set(itemKeyOf(object), object)
    },
  }
}

const itemKeysOf = (object: Readonly<CSIStorageCapacity>): ItemKey[] => [itemKeyOf(object)]

/** A total order, so that every process keeps the same object. */
function byAge({ metadata: a }: Capacity, { metadata: b }: Capacity): number {
  const [left, right] = [a, b].map(({ creationTimestamp = '', name }) => `${creationTimestamp} ${name}`)
  return left! < right! ? -1 : 1
}
