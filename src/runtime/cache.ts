// A local copy of the selected objects of a kind, updated by a watch, with indexes and subscribers. Reads are synchronous and
// may lag behind the server. reflector.ts lists and watches; cache-set.ts shares caches between controllers.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import type { Clock, Random } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client, ObjectRef, WatchEvent } from '../client/client.ts'
import { keyOfObject, keyOfRef, type ObjectKey } from '../client/object-key.ts'
import { type IndexFunction, ObjectSet } from './object-set.ts'
import { isOlder, runReflector } from './reflector.ts'

export interface CacheOptions<T extends KubeObject> {
  readonly client: Client
  readonly kind: Kind<T>
  /** Default: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** Removes fields that are not needed. Must keep name, namespace, uid and resourceVersion. Default: removes managedFields. */
  readonly reduce?: (object: Readonly<Stored<T>>) => Readonly<Stored<T>>
}

/** The functions are called synchronously and in order. An error is logged; during `subscribe` it is thrown. */
export interface CacheHandlers<T extends KubeObject> {
  added?(object: Readonly<Stored<T>>): void
  updated?(next: Readonly<Stored<T>>, old: Readonly<Stored<T>>): void
  /** `cached` is the last state that was in the cache. The deleted object may have been changed by the same write. */
  deleted?(object: Readonly<Stored<T>>, cached: Readonly<Stored<T>>): void
}

export interface Cache<T extends KubeObject> {
  readonly kind: Kind<T>
  /** Returns undefined if there is no such object, or no key. */
  get(key: ObjectKey | ObjectRef | undefined): Readonly<Stored<T>> | undefined
  list(namespace?: string): readonly Readonly<Stored<T>>[]
  readonly size: number
  /** `valuesOf` must be pure, because it also computes the values to remove. Adding the same index again has no effect. */
  addIndex(name: string, valuesOf: IndexFunction<Stored<T>>): void
  byIndex(name: string, value: string): readonly Readonly<Stored<T>>[]
  /** Calls `added` immediately for every object in the cache. Returns a function that unsubscribes. */
  subscribe(handlers: CacheHandlers<T>): () => void
  /** Whether the first list is complete. */
  readonly isSynced: boolean
  /** Resolves to true when the cache is synced, or to false if the signal is aborted first. */
  whenSynced(signal: AbortSignal): Promise<boolean>
  /**
   * Resolves to true when the cache is synced or the server has responded that it does not serve the kind, or not to this
   * user, or to false if the signal is aborted first.
   */
  whenSyncedOrNotServed(signal: AbortSignal): Promise<boolean>
  /** False while the server does not serve the kind, or not to this user: the cache is then not updated. */
  readonly isServed: boolean
  /** Resolves to true when the cache has reached the version of a write, or to false if the signal is aborted first. */
  whenReached(resourceVersion: string, signal: AbortSignal): Promise<boolean>
  /**
   * Applies the object that a write returned, before the watch delivers it, so that the next reconcile does not read the
   * old state. Ignores objects that are not in the cache with this uid, because a new object may already have been deleted.
   */
  applyWriteResult(object: Readonly<Stored<T>>): void
  /** The resourceVersion that the cache has reached. */
  readonly resourceVersion: string
  /** Returns the time since the last list, event or bookmark. */
  lastEventAgeMs(): number
  stats(): CacheStats
  /** Lists and watches until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>
}

interface CacheStats {
  readonly objects: number
  /** The number of complete lists, including the first. */
  readonly relists: number
  /** The number of changes that the watch did not deliver and that a later list contained. */
  readonly foundByRelist: number
}

/**
 * The objects of the first list that are added per turn of the event loop. Subscribers are called for each of them; 100,000 in one turn
 * delayed requests by more than a second.
 */
const FIRST_LIST_SLICE = 1_000
const BY_NAMESPACE = 'namespace'
const namespacesOf = ({ metadata: { namespace } }: Readonly<KubeObject>): string[] => (namespace ? [namespace] : [])

export function createCache<T extends KubeObject>(options: CacheOptions<T>): Cache<T> {
  const { kind, clock, log = silentLog } = options
  const reduce = options.reduce ?? withoutManagedFields
  const objects = new ObjectSet<Stored<T>>()
  const indexFunctions = new Map<string, IndexFunction<Stored<T>>>()
  const subscribers = new Set<CacheHandlers<T>>()
  const waiters = new Set<() => void>()
  /** The index is created when it is first needed. */
  let hasNamespaceIndex = false
  let isSynced = false
  let isServed = true
  let resourceVersion = '0'
  let lastEventMs = clock.monotonicMs()
  let relists = 0
  let foundByRelist = 0

  function notify(call: (handlers: CacheHandlers<T>) => void): void {
    for (const handlers of subscribers) {
      try {
        call(handlers)
      } catch (error) {
        log.error({ err: error, kind: kind.kind }, 'a cache subscriber threw; the others were called')
      }
    }
  }

  /** Adds or updates an object. Returns false if the event is repeated or outdated, as after each write of this process. */
  function put(received: Readonly<Stored<T>>, reduceReceived = reduce): boolean {
    const key = keyOfObject(received)
    const old = objects.get(key)
    const isKnown = old !== undefined && old.metadata.uid === received.metadata.uid
    if (isKnown && !isOlder(old.metadata.resourceVersion, received.metadata.resourceVersion)) return false
    const object = reduceReceived(received)
    if (isKnown) {
      objects.put(key, object)
      notify((handlers) => handlers.updated?.(object, old))
      return true
    }
    if (old) remove(key) // the object was recreated, and the deletion was not delivered
    objects.put(key, object)
    notify((handlers) => handlers.added?.(object))
    return true
  }

  function remove(key: ObjectKey, lastState?: Readonly<Stored<T>>): boolean {
    const old = objects.get(key)
    if (!old) return false
    objects.delete(key)
    const deletedObject = lastState ? reduce(lastState) : old
    notify((handlers) => handlers.deleted?.(deletedObject, old))
    return true
  }

  function markNotServed(): void {
    isServed = false
    for (const check of waiters) check()
  }

  function advanceTo(version: string): void {
    isServed = true
    lastEventMs = clock.monotonicMs()
    if (isOlder(resourceVersion, version)) resourceVersion = version
    for (const check of waiters) check()
  }

  function applyEvent({ type, object }: Extract<WatchEvent<T>, { object: unknown }>): void {
    if (type === 'deleted') {
      const key = keyOfObject(object)
      const { uid, resourceVersion: knownVersion = '0' } = objects.get(key)?.metadata ?? {}
      const isOutdated = uid !== object.metadata.uid || isOlder(object.metadata.resourceVersion, knownVersion)
      if (!isOutdated) remove(key, object)
    } else put(object)
    advanceTo(object.metadata.resourceVersion)
  }

  /**
   * Replaces the contents with a complete list of reduced objects. Objects that are not in the list have been deleted. Only a long
   * first list is added in several turns of the event loop: readers wait until the cache is synced.
   */
  function replace(listedObjects: readonly Readonly<Stored<T>>[], version: string): void | Promise<void> {
    relists++
    if (!isSynced && objects.size === 0 && listedObjects.length > FIRST_LIST_SLICE) return fill(listedObjects, version)
    const hasServerRestarted = isOlder(version, resourceVersion)
    if (hasServerRestarted) resourceVersion = '0'
    const listedKeys = new Set(listedObjects.map(keyOfObject))
    let changeCount = 0
    for (const key of [...objects.keys()]) if (!listedKeys.has(key) && remove(key)) changeCount++
    for (const object of listedObjects) {
      // The server was restarted with an empty disk: a lower version is not an older one.
      if (
        hasServerRestarted &&
        objects.get(keyOfObject(object))?.metadata.resourceVersion !== object.metadata.resourceVersion
      ) {
        remove(keyOfObject(object))
      }
      if (put(object, withoutReduction)) changeCount++
    }
    if (isSynced) foundByRelist += changeCount
    isSynced = true
    advanceTo(version)
  }

  /** Adds the first list in several turns of the event loop. */
  async function fill(listedObjects: readonly Readonly<Stored<T>>[], version: string): Promise<void> {
    for (const [index, object] of listedObjects.entries()) {
      if (index > 0 && index % FIRST_LIST_SLICE === 0) await clock.nextTurn()
      put(object, withoutReduction)
    }
    isSynced = true
    advanceTo(version)
  }

  function waitUntil(condition: () => boolean, signal: AbortSignal): Promise<boolean> {
    if (condition()) return Promise.resolve(true)
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const settle = (result: boolean) => {
        waiters.delete(check)
        signal.removeEventListener('abort', abort)
        resolve(result)
      }
      const check = () => condition() && settle(true)
      const abort = () => settle(false)
      waiters.add(check)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  return {
    kind,
    get(key) {
      if (key === undefined) return undefined
      return objects.get(typeof key === 'string' ? key : keyOfRef(key))
    },
    list(namespace) {
      if (!namespace) return [...objects.values()]
      if (!hasNamespaceIndex) objects.addIndex(BY_NAMESPACE, namespacesOf)
      hasNamespaceIndex = true
      return objects.byIndex(BY_NAMESPACE, namespace)
    },
    get size() {
      return objects.size
    },
    addIndex(name, valuesOf) {
      if (indexFunctions.get(name) === valuesOf) return
      objects.addIndex(name, valuesOf)
      indexFunctions.set(name, valuesOf)
    },
    byIndex: (name, value) => objects.byIndex(name, value),
    subscribe(handlers) {
      const ownHandlers = { ...handlers }
      for (const object of objects.values()) ownHandlers.added?.(object)
      subscribers.add(ownHandlers)
      return () => void subscribers.delete(ownHandlers)
    },
    get isSynced() {
      return isSynced
    },
    get isServed() {
      return isServed
    },
    get resourceVersion() {
      return resourceVersion
    },
    applyWriteResult(object) {
      const cachedObject = objects.get(keyOfObject(object))
      if (cachedObject && cachedObject.metadata.uid === object.metadata.uid) put(object)
    },
    whenSynced: (signal) => waitUntil(() => isSynced, signal),
    whenSyncedOrNotServed: (signal) => waitUntil(() => isSynced || !isServed, signal),
    whenReached: (version, signal) => waitUntil(() => isSynced && !isOlder(resourceVersion, version), signal),
    lastEventAgeMs: () => clock.monotonicMs() - lastEventMs,
    stats: () => ({ objects: objects.size, relists, foundByRelist }),
    run: (signal) =>
      runReflector(
        {
          ...options,
          log,
          sink: { reduce, replace, applyEvent, advanceTo, markNotServed },
        },
        signal,
      ),
  }
}

/** For the objects of a list, which are reduced as they arrive. */
const withoutReduction = <T>(object: T): T => object

/** Removes managedFields, which can be half of an object's size. */
function withoutManagedFields<T extends KubeObject>(object: Readonly<Stored<T>>): Readonly<Stored<T>> {
  if (!object.metadata.managedFields) return object
  const { managedFields: _, ...metadata } = object.metadata
  return Object.freeze({ ...object, metadata: Object.freeze(metadata) })
}
