// Indexes the existing objects of this producer by item. The index includes created objects whose watch event has not
// arrived yet: otherwise the next reconcile would create a second object.
import type { Stored } from '../../api/kind.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { keyOfObject } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { isOlder } from '../../runtime/reflector.ts'
import { type ItemKey, itemKeyOf } from './items.ts'

type Capacity = Readonly<Stored<CSIStorageCapacity>>

export interface PublishedObjects {
  /** Returns the objects of the item, oldest first. The oldest is kept if there are several. */
  objectsOf(key: ItemKey): readonly Capacity[]
  /** Counts the desired items that have an object (current) and all other objects (obsolete). */
  count(isDesired: (key: ItemKey) => boolean): { readonly current: number; readonly obsolete: number }
  /** Adds the object that a write of this producer returned. */
  addWrittenObject(object: Capacity): void
}

const BY_ITEM = 'capacity: item'

export function createPublishedObjects(cache: Cache<CSIStorageCapacity>): PublishedObjects {
  cache.addIndex(BY_ITEM, itemKeysOf)
  /** Bounded by the number of objects whose watch event has not arrived yet. */
  const createdObjects = new Map<ItemKey, Capacity>()
  return {
    objectsOf(key) {
      const cachedObjects = cache.byIndex(BY_ITEM, key)
      const createdObject = createdObjects.get(key)
      if (!createdObject) return cachedObjects.length > 1 ? [...cachedObjects].sort(byAge) : cachedObjects
      if (!isOlder(cache.resourceVersion, createdObject.metadata.resourceVersion)) createdObjects.delete(key)
      const isMissing =
        createdObjects.has(key) && !cachedObjects.some(({ metadata }) => metadata.uid === createdObject.metadata.uid)
      return (isMissing ? [...cachedObjects, createdObject] : [...cachedObjects]).sort(byAge)
    },
    count(isDesired) {
      const items = new Set<ItemKey>()
      for (const object of cache.list()) {
        const key = itemKeyOf(object)
        if (isDesired(key)) items.add(key)
      }
      return { current: items.size, obsolete: cache.size - items.size }
    },
    addWrittenObject(object) {
      cache.applyWriteResult(object)
      if (!cache.get(keyOfObject(object))) createdObjects.set(itemKeyOf(object), object)
    },
  }
}

const itemKeysOf = (object: Readonly<CSIStorageCapacity>): ItemKey[] => [itemKeyOf(object)]

/** A total order, so that all processes keep the same object. */
function byAge({ metadata: a }: Capacity, { metadata: b }: Capacity): number {
  const [firstKey, secondKey] = [a, b].map(({ creationTimestamp = '', name }) => `${creationTimestamp} ${name}`)
  return firstKey! < secondKey! ? -1 : 1
}
