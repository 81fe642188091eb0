// Lists and watches one kind of object, and reconnects after any failure. The sink (cache.ts) receives the objects.
//
//   no version ──list (WatchList, or pages)──→ watch from the version of the list
//   the stream ends, fails or is silent ──→ watch from the last version; immediately if the server ended a healthy stream
//   410, or a version that the server has not reached ──→ no version: list again
//   404 ──→ the kind is not served: retry with backoff
//   403 ──→ the permission is missing (rights.ts reports it): retry with backoff
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { ApiError, isMissingRight, isNotServed } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client, WatchEvent } from '../client/client.ts'
import { type Backoff, backoffMs } from './backoff.ts'

interface ReflectorSink<T extends KubeObject> {
  /** Removes the fields of a listed object that the sink does not need, before the list is complete. */
  reduce(object: Readonly<Stored<T>>): Readonly<Stored<T>>
  /** Receives the complete list of reduced objects at this version. If it returns a promise, events follow when that is resolved. */
  replace(objects: readonly Readonly<Stored<T>>[], resourceVersion: string): void | Promise<void>
  applyEvent(event: Extract<WatchEvent<T>, { object: unknown }>): void
  /** Called when all changes up to this version have been delivered. */
  advanceTo(resourceVersion: string): void
  /**
   * Called when the server does not serve the kind, or not to this user. A later call of replace, applyEvent or advanceTo
   * means that the kind is served again.
   */
  markNotServed(): void
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly client: Client
  readonly kind: Kind<T>
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly sink: ReflectorSink<T>
}

const WATCH_SECONDS_MIN = 300 // plus a random time, so that streams do not end at the same time
const WATCH_SECONDS_SPREAD = 300
/** A stream that the server has not ended after this additional time is considered lost. */
const STREAM_END_GRACE_MS = 30_000
const LIST_PAGE_SIZE = 500
const RECONNECT_BACKOFF: Backoff = { baseMs: 800, maxMs: 30_000 }
/** A stream that lasted this long resets the backoff. If the server ends it without an error, the watch resumes immediately. */
const HEALTHY_STREAM_MS_MIN = 30_000
/**
 * A list with an older version is rejected, because the server may lag behind. After this many such lists the last one is
 * applied, because the server was probably restarted with an empty disk.
 */
const OLDER_LISTS_MAX = 3

/** Runs until the signal is aborted. */
export async function runReflector<T extends KubeObject>(
  options: ReflectorOptions<T>,
  signal: AbortSignal,
): Promise<void> {
  const { client, kind, clock, random, log, sink } = options
  setMaxListeners(0, signal) // every cache of the process adds a listener
  const selection = {
    namespace: options.namespace,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  }
  /** The version to watch from. Undefined if a list is needed first. */
  let version: string | undefined
  let newestVersion = '0'
  let olderLists = 0
  let hasWatchList = true
  let failures = 0
  let isServed = true

  while (!signal.aborted) {
    const startedMs = clock.monotonicMs()
    let failure: unknown
    try {
      if (version === undefined && !hasWatchList) {
        const filling = applyList(...(await listAll()))
        if (filling) await filling
      }
      await watchOnce()
    } catch (error) {
      if (signal.aborted) return
      failure = error
      if (isUnknownVersion(error)) version = undefined
      if (error instanceof NoWatchListError) {
        hasWatchList = false
        const message = 'the server does not support WatchList; listing instead'
        if (!isMissingRight(error.cause)) log.info({ kind: kind.kind, reason: error.message }, message)
        continue
      }
    }
    if (clock.monotonicMs() - startedMs >= HEALTHY_STREAM_MS_MIN) {
      failures = 0
      if (failure === undefined) continue
    }
    const waitMs = Math.max(backoffMs(RECONNECT_BACKOFF, failures++, random), retryAfterMs(failure))
    if (isNotServed(failure)) {
      if (isServed) log.info({ kind: kind.kind }, 'the server does not serve this kind; retrying with backoff')
      isServed = false
      sink.markNotServed()
    } else if (isMissingRight(failure)) sink.markNotServed()
    else if (failure) log.info({ err: failure, kind: kind.kind, version, waitMs }, 'watch failed; resuming')
    await clock.sleep(waitMs, signal).catch(() => {})
  }

  /** Watches until the stream ends. */
  async function watchOnce(): Promise<void> {
    if (signal.aborted) return
    const streamAbort = new AbortController()
    const stop = () => streamAbort.abort()
    signal.addEventListener('abort', stop, { once: true })
    const timeoutSeconds = Math.floor(WATCH_SECONDS_MIN + random() * WATCH_SECONDS_SPREAD)
    const cancelStreamTimeout = clock.after(timeoutSeconds * 1_000 + STREAM_END_GRACE_MS, stop)
    try {
      const request = { ...selection, timeoutSeconds, signal: streamAbort.signal }
      if (version === undefined) await watchFromInitialList(client.watch(kind, { ...request, sendInitialEvents: true }))
      else for await (const event of client.watch(kind, { ...request, resourceVersion: version })) applyEvent(event)
    } finally {
      cancelStreamTimeout()
      signal.removeEventListener('abort', stop)
    }
  }

  /** Collects the initial objects of a WatchList, passes them to the sink when the list is complete, and then watches. */
  async function watchFromInitialList(events: AsyncIterable<WatchEvent<T>>): Promise<void> {
    let initialObjects: Map<string, Readonly<Stored<T>>> | undefined = new Map()
    try {
      for await (const event of events) {
        if (!initialObjects) applyEvent(event)
        else if (event.type !== 'bookmark') {
          const { namespace = '', name } = event.object.metadata
          if (event.type === 'deleted') initialObjects.delete(`${namespace}/${name}`)
          else initialObjects.set(`${namespace}/${name}`, sink.reduce(event.object))
        } else if (event.endsInitialEvents) {
          const filling = applyList([...initialObjects.values()], event.resourceVersion)
          if (filling) await filling // an await of nothing would delay the events that follow
          initialObjects = undefined
        } else throw new NoWatchListError('the stream has no bookmark that ends the initial events')
      }
    } catch (error) {
      if (initialObjects && error instanceof ApiError && NO_WATCH_LIST_CODES.includes(error.code)) {
        throw new NoWatchListError(error.message, { cause: error })
      }
      throw error
    }
    if (initialObjects && !signal.aborted) throw new Error('the watch ended before the initial list was complete')
  }

  async function listAll(): Promise<[Readonly<Stored<T>>[], string]> {
    const objects: Readonly<Stored<T>>[] = []
    let continueToken: string | undefined
    for (;;) {
      const page = await client.list(kind, { ...selection, limit: LIST_PAGE_SIZE, continueToken, signal })
      for (const object of page.items) objects.push(sink.reduce(object))
      if (!page.continueToken) return [objects, page.resourceVersion]
      continueToken = page.continueToken
    }
  }

  function applyList(objects: readonly Readonly<Stored<T>>[], resourceVersion: string): void | Promise<void> {
    if (isOlder(resourceVersion, newestVersion) && ++olderLists < OLDER_LISTS_MAX) {
      throw new Error(`the list at version ${resourceVersion} is older than the last version ${newestVersion}`)
    }
    olderLists = 0
    isServed = true
    version = resourceVersion
    newestVersion = resourceVersion
    return sink.replace(objects, resourceVersion)
  }

  function applyEvent(event: WatchEvent<T>): void {
    isServed = true
    if (event.type === 'bookmark') {
      version = event.resourceVersion
      if (isOlder(newestVersion, version)) newestVersion = version
      sink.advanceTo(version)
      return
    }
    // One commit can change several objects in one version, and the stream can fail between two of these events. A version
    // is complete only when a newer one arrives, so resume from the previous version. The sink ignores repeated events.
    const { resourceVersion } = event.object.metadata
    if (isOlder(newestVersion, resourceVersion)) {
      version = newestVersion
      newestVersion = resourceVersion
    }
    sink.applyEvent(event)
  }
}

/** Compares resourceVersions, which are decimal numbers of any length. */
export const isOlder = (a: string, b: string): boolean => (a.length === b.length ? a < b : a.length < b.length)

class NoWatchListError extends Error {}

/** Status codes of servers without WatchList: 4xx if the parameter is unknown or forbidden, 500 if etcd is too old. */
const NO_WATCH_LIST_CODES = [400, 403, 405, 422, 500]

const isUnknownVersion = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.code === 410 || error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') === true)

const retryAfterMs = (error: unknown): number =>
  error instanceof ApiError ? (error.details?.retryAfterSeconds ?? 0) * 1_000 : 0
