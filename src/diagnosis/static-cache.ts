// Caches with fixed objects, with which the plugins of the scheduler and the plan functions of controllers read a snapshot.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { keyOfObject, keyOfRef } from '../client/index.ts'
import type { Cache } from '../runtime/index.ts'
import { ObjectSet } from '../runtime/object-set.ts'

/** `isSynced` is false if the objects could not be read. */
export function createStaticCache<T extends KubeObject>(
  kind: Kind<T>,
  objects: readonly Readonly<Stored<T>>[],
  isSynced = true,
): Cache<T> {
  const set = new ObjectSet<Stored<T>>()
  for (const object of objects) set.put(keyOfObject(object), object)
  const indexNames = new Set<string>()
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
      for (const object of set.values()) handlers.added?.(object)
      return () => {}
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
