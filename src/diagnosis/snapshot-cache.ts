// Caches a snapshot's objects of one kind for the scheduler's plugins and the controllers' plan functions. Only `put` and
// `delete` change the cache.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { keyOfObject, keyOfRef, type ObjectKey } from '../client/index.ts'
import type { CacheHandlers } from '../runtime/cache.ts'
import type { Cache } from '../runtime/index.ts'
import { ObjectSet } from '../runtime/object-set.ts'

interface SnapshotCache<T extends KubeObject> extends Cache<T> {
  /** Adds or replaces the object, and calls the handlers of the subscribers. */
  put(object: Readonly<Stored<T>>): void
  /** Removes the object, and calls the handlers of the subscribers. */
  delete(key: ObjectKey): void
}

/** `isSynced` is false if the objects could not be read. */
export function createSnapshotCache<T extends KubeObject>(
  kind: Kind<T>,
  objects: readonly Readonly<Stored<T>>[],
  isSynced = true,
): SnapshotCache<T> {
  const set = new ObjectSet<Stored<T>>()
  for (const object of objects) set.put(keyOfObject(object), object)
  const indexNames = new Set<string>()
  const subscribers = new Set<CacheHandlers<T>>()
  return {
    kind,
    get: (key) => (key === undefined ? undefined : set.get(typeof key === 'string' ? key : keyOfRef(key))),
    list: (namespace) =>
      [...set.values()].filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
    get size() {
      return set.size
    },
    addIndex(name, valuesOf) {
      if (!indexNames.has(name)) set.addIndex(name, valuesOf)
      indexNames.add(name)
    },
    byIndex: (name, value) => set.byIndex(name, value),
    subscribe(handlers) {
      subscribers.add(handlers)
      for (const object of set.values()) handlers.added?.(object)
      return () => void subscribers.delete(handlers)
    },
    put(object) {
      const key = keyOfObject(object)
      const old = set.get(key)
      set.put(key, object)
      for (const handlers of subscribers) {
        if (old) handlers.updated?.(object, old)
        else handlers.added?.(object)
      }
    },
    delete(key) {
      const old = set.get(key)
      if (!old) return
      set.delete(key)
      for (const handlers of subscribers) handlers.deleted?.(old, old)
    },
    isSynced,
    isServed: isSynced,
    whenSynced: async () => isSynced,
    whenSyncedOrNotServed: async () => true,
    whenReached: async () => true,
    applyWriteResult() {},
    resourceVersion: '0',
    lastEventAgeMs: () => 0,
    stats: () => ({ objects: set.size, relists: 0, foundByRelist: 0 }),
    run: async () => {},
  }
}
