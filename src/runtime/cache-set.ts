// One cache per kind and selection, shared by all controllers of a process. It starts with the first lease and stops with the
// last. Controllers that need metadata only share the full cache if there is one.
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
}

export interface Selection {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** A reference to a shared cache. */
export interface CacheLease<T extends KubeObject> {
  readonly cache: Cache<T>
  /** Settles when the cache has stopped, if this was the last lease. */
  release(): Promise<void>
}

export interface CacheSet {
  acquire<T extends KubeObject>(kind: Kind<T>, selection?: Selection): CacheLease<T>
  /** A lease that lasts until `stop`. */
  of<T extends KubeObject>(kind: Kind<T>, selection?: Selection): Cache<T>
  /**
   * A lease until `stop` on all objects of a kind, with at least identity, owners and finalizers: the full cache if it was
   * acquired before, else a cache of metadata.
   */
  metadataOf(kind: Kind): Cache<KubeObject>
  /** For metrics. */
  all(): readonly Cache<KubeObject>[]
  /** Every cache of the set is complete, or its kind is not served. False if the signal fired first. */
  whenAnswered(signal: AbortSignal): Promise<boolean>
  stop(): Promise<void>
}

interface Running {
  readonly cache: Cache<KubeObject>
  readonly controller: AbortController
  readonly stopped: Promise<void>
  shares: number
}

export function createCacheSet(options: CacheSetOptions): CacheSet {
  const running = new Map<string, Running>()

  function start(kind: Kind, selection: Selection, reduce?: CacheOptions<KubeObject>['reduce']): Running {
    const cache = createCache({ ...options, ...selection, kind, ...(reduce ? { reduce } : {}) })
    const controller = new AbortController()
    return { cache, controller, stopped: cache.run(controller.signal), shares: 0 }
  }

  function acquire<T extends KubeObject>(kind: Kind<T>, selection: Selection = {}): CacheLease<T> {
    const id = idOf(kind, selection)
    return share(id, running.get(id) ?? start(kind, selection)) as CacheLease<T>
  }

  function metadataOf(kind: Kind): Cache<KubeObject> {
    const [whole, metadata] = [idOf(kind, {}), `metadata ${idOf(kind, {})}`]
    const id = running.has(whole) ? whole : metadata
    return share(id, running.get(id) ?? start(kind, {}, metadataOnly)).cache
  }

  function share(id: string, one: Running): CacheLease<KubeObject> {
    running.set(id, one)
    one.shares++
    let released = false
    return {
      cache: one.cache,
      async release() {
        if (released) return
        released = true
        if (--one.shares > 0) return
        if (running.get(id) === one) running.delete(id)
        one.controller.abort()
        await one.stopped
      },
    }
  }

  return {
    acquire,
    of: (kind, selection) => acquire(kind, selection).cache,
    metadataOf,
    all: () => [...running.values()].map(({ cache }) => cache),
    async whenAnswered(signal) {
      const answered = await Promise.all([...running.values()].map(({ cache }) => cache.whenAnswered(signal)))
      return answered.every(Boolean)
    },
    async stop() {
      const all = [...running.values()]
      running.clear()
      for (const { controller } of all) controller.abort()
      await Promise.all(all.map(({ stopped }) => stopped))
    },
  }
}

const idOf = (kind: Kind, { namespace = '', labelSelector = '', fieldSelector = '' }: Selection): string =>
  JSON.stringify([kind.group, kind.plural, namespace, labelSelector, fieldSelector])

function metadataOnly({ metadata }: Readonly<Stored>): Readonly<Stored> {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata
  return Object.freeze({
    metadata: Object.freeze({ name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp }),
  })
}
