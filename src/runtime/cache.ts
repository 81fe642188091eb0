// A local copy of all objects of a kind, kept up to date by a watch, with indexes and subscribers. Reads are synchronous and
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
  /** Absent: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** Drops fields a cache does not need. Must keep name, namespace, uid and resourceVersion. */
  readonly reduce?: (object: Readonly<Stored<T>>) => Readonly<Stored<T>>
}

/** Called synchronously and in order. An error they throw is logged. */
export interface CacheHandlers<T extends KubeObject> {
  added?(object: Readonly<Stored<T>>): void
  updated?(next: Readonly<Stored<T>>, old: Readonly<Stored<T>>): void
  deleted?(object: Readonly<Stored<T>>): void
}

/** Memory is bounded by the objects of the kind on the server; use a selector to hold fewer. */
export interface Cache<T extends KubeObject> {
  readonly kind: Kind<T>
  get(key: ObjectKey | ObjectRef): Readonly<Stored<T>> | undefined
  list(namespace?: string): readonly Readonly<Stored<T>>[]
  readonly size: number
  /** `keysOf` must be pure: an object is removed under the keys it was added with. Adding the same function again has no effect. */
  addIndex(name: string, keysOf: IndexFunction<Stored<T>>): void
  byIndex(name: string, key: string): readonly Readonly<Stored<T>>[]
  /** Calls `added` at once for every object in the cache. The returned function unsubscribes. */
  subscribe(handlers: CacheHandlers<T>): () => void
  /** True once the first list is complete. */
  readonly synced: boolean
  /** False when the signal fired first. */
  whenSynced(signal: AbortSignal): Promise<boolean>
  /**
   * For kinds that may be disabled: true once the first list is complete, or the server has answered that it does not
   * serve the kind.
   */
  whenAnswered(signal: AbortSignal): Promise<boolean>
  /** False while the server does not serve the kind; the objects in the cache are then from before. */
  readonly isServed: boolean
  /** Resolves when the cache has reached this version, as a write returned it. False if the signal fired first. */
  whenSeen(resourceVersion: string, signal: AbortSignal): Promise<boolean>
  /**
   * Updates the cache with the object a write returned, before the watch delivers it, so that the next reconcile does not
   * read the old state. Only for objects in the cache: a new one may have been deleted since.
   */
  learn(object: Readonly<Stored<T>>): void
  /** The resourceVersion the cache has reached. */
  readonly resourceVersion: string
  /** Time since the last event or bookmark; after more than a few minutes the cache is stale. */
  lastEventAgeMs(): number
  stats(): CacheStats
  /** Lists and watches until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

export interface CacheStats {
  readonly objects: number
  /** How often the cache listed again, and how many changes only a list revealed. */
  readonly relists: number
  readonly foundByRelist: number
}

const BY_NAMESPACE = 'namespace'

export function createCache<T extends KubeObject>(options: CacheOptions<T>): Cache<T> {
  const { kind, clock, log = silentLog } = options
  const reduce = options.reduce ?? withoutManagedFields
  const objects = new ObjectSet<Stored<T>>()
  const indexFunctions = new Map<string, IndexFunction<Stored<T>>>()
  const subscribers = new Set<CacheHandlers<T>>()
  const waiters = new Set<() => void>()
  let synced = false
  let isServed = true
  let resourceVersion = '0'
  let lastEventMs = clock.monotonicMs()
  let relists = 0
  let foundByRelist = 0

  objects.addIndex(BY_NAMESPACE, ({ metadata: { namespace } }) => (namespace ? [namespace] : []))

  function notify(run: (handlers: CacheHandlers<T>) => void): void {
    for (const handlers of subscribers) {
      try {
        run(handlers)
      } catch (error) {
        log.error({ err: error, kind: kind.kind }, 'a cache subscriber threw; the others were called')
      }
    }
  }

  function put(object: Readonly<Stored<T>>): boolean {
    const key = keyOfObject(object)
    const old = objects.get(key)
    if (old && old.metadata.uid === object.metadata.uid) {
      const [before, now] = [old.metadata.resourceVersion, object.metadata.resourceVersion]
      if (before === now || isOlder(now, before)) return false // delivered twice or late
      const next = reduce(object)
      objects.put(key, next)
      notify((handlers) => handlers.updated?.(next, old))
      return true
    }
    if (old) drop(key) // recreated under the same name; its deletion was not delivered
    const added = reduce(object)
    objects.put(key, added)
    notify((handlers) => handlers.added?.(added))
    return true
  }

  function drop(key: ObjectKey, last?: Readonly<Stored<T>>): boolean {
    const old = objects.get(key)
    if (!old) return false
    objects.delete(key)
    const gone = last ? reduce(last) : old
    notify((handlers) => handlers.deleted?.(gone))
    return true
  }

  function notServed(): void {
    isServed = false
    for (const check of waiters) check()
  }

  function progressed(version: string): void {
    isServed = true
    lastEventMs = clock.monotonicMs()
    if (isOlder(resourceVersion, version)) resourceVersion = version
    for (const check of waiters) check()
  }

  function changed({ type, object }: Extract<WatchEvent<T>, { object: unknown }>): void {
    if (type === 'deleted') {
      const key = keyOfObject(object)
      const { uid, resourceVersion: known = '0' } = objects.get(key)?.metadata ?? {}
      const isLate = uid !== object.metadata.uid || isOlder(object.metadata.resourceVersion, known)
      if (!isLate) drop(key, object)
    } else put(object)
    progressed(object.metadata.resourceVersion)
  }

  /** A complete list: objects that are not in it have been deleted. */
  function replace(state: readonly Readonly<Stored<T>>[], version: string): void {
    relists++
    const isRewritten = isOlder(version, resourceVersion)
    if (isRewritten) resourceVersion = '0'
    const present = new Set(state.map(keyOfObject))
    let found = 0
    for (const key of [...objects.keys()]) if (!present.has(key) && drop(key)) found++
    for (const object of state) {
      // The server started over: a lower version is not an older one.
      if (
        isRewritten &&
        objects.get(keyOfObject(object))?.metadata.resourceVersion !== object.metadata.resourceVersion
      ) {
        drop(keyOfObject(object))
      }
      if (put(object)) found++
    }
    if (synced) foundByRelist += found
    synced = true
    progressed(version)
  }

  function when(condition: () => boolean, signal: AbortSignal): Promise<boolean> {
    if (condition()) return Promise.resolve(true)
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const settle = (is: boolean) => {
        waiters.delete(check)
        signal.removeEventListener('abort', abort)
        resolve(is)
      }
      const check = () => condition() && settle(true)
      const abort = () => settle(false)
      waiters.add(check)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  return {
    kind,
    get: (key) => objects.get(typeof key === 'string' ? key : keyOfRef(key)),
    list: (namespace) => (namespace ? objects.byIndex(BY_NAMESPACE, namespace) : [...objects.values()]),
    get size() {
      return objects.size
    },
    addIndex(name, keysOf) {
      if (indexFunctions.get(name) === keysOf) return
      objects.addIndex(name, keysOf)
      indexFunctions.set(name, keysOf)
    },
    byIndex: (name, key) => objects.byIndex(name, key),
    subscribe(handlers) {
      const own = { ...handlers }
      for (const object of objects.values()) own.added?.(object)
      subscribers.add(own)
      return () => void subscribers.delete(own)
    },
    get synced() {
      return synced
    },
    get isServed() {
      return isServed
    },
    get resourceVersion() {
      return resourceVersion
    },
    learn(object) {
      if (objects.get(keyOfObject(object))?.metadata.uid === object.metadata.uid) put(object)
    },
    whenSynced: (signal) => when(() => synced, signal),
    whenAnswered: (signal) => when(() => synced || !isServed, signal),
    whenSeen: (version, signal) => when(() => synced && !isOlder(resourceVersion, version), signal),
    lastEventAgeMs: () => clock.monotonicMs() - lastEventMs,
    stats: () => ({ objects: objects.size, relists, foundByRelist }),
    run: (signal) => runReflector({ ...options, log, sink: { replace, changed, progressed, notServed } }, signal),
  }
}

/** managedFields is half of many objects, and no controller reads it. */
function withoutManagedFields<T extends KubeObject>(object: Readonly<Stored<T>>): Readonly<Stored<T>> {
  if (!object.metadata.managedFields) return object
  const { managedFields: _, ...metadata } = object.metadata
  return Object.freeze({ ...object, metadata: Object.freeze(metadata) })
}
