// Shares one cache per kind and selection between the controllers of a process. A cache starts with its first lease and
// stops when its last lease is released.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/client.ts'
import { type Cache, type CacheOptions, createCache } from './cache.ts'

export interface CacheSetOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** Removes fields of cached objects that no controller of the process reads. Default: only managedFields are removed. */
  readonly reductions?: CacheReductions
}

/** The function `reduce` of CacheOptions for each kind whose objects are cached without some fields. */
export type CacheReductions = ReadonlyMap<Kind, (object: Readonly<Stored>) => Readonly<Stored>>

interface Selection {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** A reference to a shared cache. */
interface CacheLease<T extends KubeObject> {
  readonly cache: Cache<T>
  /** Releases the reference. If this was the last lease, settles when the cache has stopped. */
  release(): Promise<void>
}

export interface CacheSet {
  acquire<T extends KubeObject>(kind: Kind<T>, selection?: Selection): CacheLease<T>
  /** Acquires a lease that lasts until `stop`. */
  of<T extends KubeObject>(kind: Kind<T>, selection?: Selection): Cache<T>
  /**
   * Acquires a lease that lasts until `stop` on a cache with at least the identity, owners, finalizers and deletion time of
   * all objects of a kind: the full cache if it was acquired before, otherwise a cache of metadata.
   */
  metadataOf(kind: Kind): Cache<KubeObject>
  /** Returns all caches, for metrics. */
  all(): readonly Cache<KubeObject>[]
  /** Resolves to true when each cache is synced or its kind is not served, or to false if the signal is aborted first. */
  whenSyncedOrNotServed(signal: AbortSignal): Promise<boolean>
  stop(): Promise<void>
}

interface RunningCache {
  readonly cache: Cache<KubeObject>
  readonly abort: AbortController
  readonly stopped: Promise<void>
  leases: number
}

export function createCacheSet({ reductions, ...options }: CacheSetOptions): CacheSet {
  const runningCaches = new Map<string, RunningCache>()

  function start(kind: Kind, selection: Selection, reduce?: CacheOptions<KubeObject>['reduce']): RunningCache {
    const cache = createCache({ ...options, ...selection, kind, ...(reduce ? { reduce } : {}) })
    const abort = new AbortController()
    return { cache, abort, stopped: cache.run(abort.signal), leases: 0 }
  }

  function acquire<T extends KubeObject>(kind: Kind<T>, selection: Selection = {}): CacheLease<T> {
    const id = idOf(kind, selection)
    return addLease(id, runningCaches.get(id) ?? start(kind, selection, reductions?.get(kind as Kind))) as CacheLease<T>
  }

  function metadataOf(kind: Kind): Cache<KubeObject> {
    const fullId = idOf(kind, {})
    const id = runningCaches.has(fullId) ? fullId : `metadata ${fullId}`
    return addLease(id, runningCaches.get(id) ?? start(kind, {}, reduceToMetadata)).cache
  }

  function addLease(id: string, runningCache: RunningCache): CacheLease<KubeObject> {
    runningCaches.set(id, runningCache)
    runningCache.leases++
    let isReleased = false
    return {
      cache: runningCache.cache,
      async release() {
        if (isReleased) return
        isReleased = true
        if (--runningCache.leases > 0) return
        if (runningCaches.get(id) === runningCache) runningCaches.delete(id)
        runningCache.abort.abort()
        await runningCache.stopped
      },
    }
  }

  return {
    acquire,
    of: (kind, selection) => acquire(kind, selection).cache,
    metadataOf,
    all: () => [...runningCaches.values()].map(({ cache }) => cache),
    async whenSyncedOrNotServed(signal) {
      const results = await Promise.all(
        [...runningCaches.values()].map(({ cache }) => cache.whenSyncedOrNotServed(signal)),
      )
      return results.every(Boolean)
    },
    async stop() {
      const caches = [...runningCaches.values()]
      runningCaches.clear()
      for (const { abort } of caches) abort.abort()
      await Promise.all(caches.map(({ stopped }) => stopped))
    },
  }
}

const idOf = (kind: Kind, { namespace = '', labelSelector = '', fieldSelector = '' }: Selection): string =>
  JSON.stringify([kind.group, kind.plural, namespace, labelSelector, fieldSelector])

function reduceToMetadata(object: Readonly<Stored>): Readonly<Stored> {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = object.metadata
  return Object.freeze({
    metadata: Object.freeze({ name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp }),
  })
}
