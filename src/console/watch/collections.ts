// The watched collections of the console. Tabs that watch the same path share one watch of the API server. A collection without
// subscribers is still watched for some time, so that a tab that is shown again can resume.
import { ApiError, badRequest } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Transport } from '../../client/http/transport.ts'
import type { Connection } from '../../client/index.ts'
import { parseApiPath } from '../forward/forward-rules.ts'
import { type CollectionSubscriber, createWatchedCollection, type WatchedCollection } from './watched-collection.ts'

export interface Collections {
  /**
   * Throws an ApiError if the path is not forwarded or is not a collection, or if too many collections are watched.
   * `unsubscribe` ends the subscription.
   */
  subscribe(
    path: string,
    create: (collection: WatchedCollection) => CollectionSubscriber,
  ): { readonly collection: WatchedCollection; unsubscribe(): void }
  close(): void
}

export interface CollectionsOptions {
  readonly transport: Transport
  readonly connection: Connection
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/**
 * How long a collection without subscribers is still watched. Hidden tabs close their socket and open it again when they are
 * shown.
 */
const UNUSED_WATCH_MS = 60_000
/** Further collections are rejected with 429. */
const COLLECTIONS_MAX = 128
/** Limit for the JSON of all objects. A collection that would exceed it is rejected with 413. */
const STATE_BYTES_MAX = 256 * 1024 * 1024
/** The parameters that select objects. The console sets all others, such as `limit`. */
const PARAMETERS = ['labelSelector', 'fieldSelector'] as const

interface Entry {
  readonly collection: WatchedCollection
  readonly controller: AbortController
  cancelStop(): void
}

export function createCollections(options: CollectionsOptions): Collections {
  const { transport, connection, clock, random, log } = options
  const entries = new Map<string, Entry>()

  function checkMemory(): void {
    let bytes = 0
    for (const { collection } of entries.values()) bytes += collection.state.bytes
    if (bytes <= STATE_BYTES_MAX) return
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `The console caches at most ${STATE_BYTES_MAX / 2 ** 20} MiB of objects. Choose a namespace, or close other tabs.`,
    )
  }

  function stop(path: string, entry: Entry): void {
    if (entries.get(path) === entry) entries.delete(path)
    entry.cancelStop()
    entry.controller.abort()
  }

  function start(path: string): Entry {
    if (entries.size >= COLLECTIONS_MAX) {
      throw new ApiError(
        429,
        'TooManyRequests',
        `The console watches at most ${COLLECTIONS_MAX} collections. Close other tabs, and try again after a minute.`,
      )
    }
    const controller = new AbortController()
    const collection = createWatchedCollection({
      ...{ transport, clock, random, path, checkMemory, server: connection.server, signal: controller.signal },
      invalidateCredentials: () => connection.invalidateCredentials?.(),
    })
    const entry: Entry = { collection, controller, cancelStop() {} }
    entries.set(path, entry)
    collection
      .run()
      .catch((error: unknown) => log.error({ err: error, path }, 'cannot watch a collection'))
      .finally(() => stop(path, entry)) // after a final error, the next subscriber starts again
    return entry
  }

  return {
    subscribe(target, create) {
      const path = parseCollectionPath(target)
      const entry = entries.get(path) ?? start(path)
      entry.cancelStop()
      const { collection } = entry
      const subscriber = create(collection)
      collection.subscribers.add(subscriber)
      return {
        collection,
        unsubscribe() {
          collection.subscribers.delete(subscriber)
          if (collection.subscribers.size > 0) return
          entry.cancelStop()
          entry.cancelStop = clock.after(UNUSED_WATCH_MS, () => stop(path, entry))
        },
      }
    },
    close() {
      for (const [path, entry] of [...entries]) stop(path, entry)
    },
  }
}

/** Returns the path with the parameters that select objects. */
function parseCollectionPath(target: string): string {
  const { resource, name, path } = parseApiPath(target)
  if (resource === undefined || name !== undefined) throw badRequest(`${target} is not a collection of objects`)
  const [pathname, query = ''] = path.split('?')
  const given = new URLSearchParams(query)
  const selected = new URLSearchParams()
  for (const parameter of PARAMETERS) {
    const value = given.get(parameter)
    if (value) selected.set(parameter, value)
  }
  return selected.size > 0 ? `${pathname}?${selected}` : (pathname as string)
}
