// Lists and watches one kind of object, and reconnects after any failure. One stream at a time. The sink (cache.ts) receives
// the objects; the client decodes them.
//
//   no version ──list (WatchList, or pages)──→ watch from its version
//   stream ends, breaks or is silent ──→ watch from the last version seen
//   410, or a version the server has not reached ──→ no version: list again and compare
//   404 ──→ the kind is not served: retry with backoff, then watch from the last version
import { setMaxListeners } from 'node:events'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { ApiError, isNotServed } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client, WatchEvent } from '../client/client.ts'
import { type Backoff, backoffMs } from './backoff.ts'

export interface ReflectorSink<T extends KubeObject> {
  /** The complete list, at this version. */
  replace(objects: readonly Readonly<Stored<T>>[], resourceVersion: string): void
  changed(event: Extract<WatchEvent<T>, { object: unknown }>): void
  /** All changes up to this version have been delivered. */
  progressed(resourceVersion: string): void
  /** The server does not serve the kind. The objects stay; the next call of another method means that it is served again. */
  notServed(): void
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

const WATCH_SECONDS_MIN = 300 // servers and proxies end longer streams; randomised, so that not all end at once
const WATCH_SECONDS_SPREAD = 300
/** A stream that the server did not end in time is treated as lost, even if the connection is open. */
const OVERDUE_MS = 30_000
const LIST_PAGE = 500
export const RECONNECT_BACKOFF: Backoff = { baseMs: 800, maxMs: 30_000 }
/** A stream that lasted this long resets the backoff. */
const HEALTHY_MS = 30_000
/** A list older than the last version seen comes from a lagging server; after this many the history was rewritten. */
const OLDER_STATES_BELIEVED = 3

/** Settles once the signal has fired. */
export async function runReflector<T extends KubeObject>(
  options: ReflectorOptions<T>,
  signal: AbortSignal,
): Promise<void> {
  const { client, kind, clock, random, log, sink } = options
  setMaxListeners(0, signal) // one listener per cache, and a process has dozens
  const selection = {
    namespace: options.namespace,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  }
  /** Where to watch from; undefined when a list is needed first. */
  let version: string | undefined
  let newestSeen = '0'
  let olderStates = 0
  let servesWatchList = true
  let failures = 0
  let isServed = true

  while (!signal.aborted) {
    const startedMs = clock.monotonicMs()
    let failure: unknown
    try {
      if (version === undefined && !servesWatchList) takeState(...(await listAll()))
      await follow()
    } catch (error) {
      if (signal.aborted) return
      failure = error
      if (isUnknownVersion(error)) version = undefined
      if (error instanceof NoWatchList) {
        servesWatchList = false
        log.info({ kind: kind.kind, because: error.message }, 'the server has no WatchList; listing instead')
        continue
      }
    }
    if (clock.monotonicMs() - startedMs >= HEALTHY_MS) failures = 0
    const waitMs = Math.max(backoffMs(RECONNECT_BACKOFF, failures++, random), retryAfterMs(failure))
    if (isNotServed(failure)) {
      if (isServed) log.info({ kind: kind.kind }, 'the server does not serve this kind; retrying with backoff')
      isServed = false
      sink.notServed()
    } else if (failure) log.info({ err: failure, kind: kind.kind, version, waitMs }, 'watch failed; resuming')
    await clock.sleep(waitMs, signal).catch(() => {})
  }

  /** One stream from start to end. */
  async function follow(): Promise<void> {
    if (signal.aborted) return
    const stream = new AbortController()
    const stop = () => stream.abort()
    signal.addEventListener('abort', stop, { once: true })
    const timeoutSeconds = Math.floor(WATCH_SECONDS_MIN + random() * WATCH_SECONDS_SPREAD)
    const cancelOverdue = clock.after(timeoutSeconds * 1_000 + OVERDUE_MS, stop)
    try {
      const request = { ...selection, timeoutSeconds, signal: stream.signal }
      if (version === undefined) await followFromState(client.watch(kind, { ...request, sendInitialEvents: true }))
      else for await (const event of client.watch(kind, { ...request, resourceVersion: version })) take(event)
    } finally {
      cancelOverdue()
      signal.removeEventListener('abort', stop)
    }
  }

  /** A WatchList delivers the list object by object; it is passed on when it is complete. */
  async function followFromState(events: AsyncIterable<WatchEvent<T>>): Promise<void> {
    let state: Map<string, Readonly<Stored<T>>> | undefined = new Map()
    try {
      for await (const event of events) {
        if (!state) take(event)
        else if (event.type !== 'bookmark') {
          const { namespace = '', name } = event.object.metadata
          if (event.type === 'deleted') state.delete(`${namespace}/${name}`)
          else state.set(`${namespace}/${name}`, event.object)
        } else if (event.endsInitialEvents) {
          takeState([...state.values()], event.resourceVersion)
          state = undefined
        } else throw new NoWatchList('the stream never said that the state is complete')
      }
    } catch (error) {
      if (state && error instanceof ApiError && WATCH_LIST_REFUSED.includes(error.code)) {
        throw new NoWatchList(error.message)
      }
      throw error
    }
    if (state && !signal.aborted) throw new Error('the watch ended before the initial list was complete')
  }

  async function listAll(): Promise<[Readonly<Stored<T>>[], string]> {
    const objects: Readonly<Stored<T>>[] = []
    let continueToken: string | undefined
    for (;;) {
      const page = await client.list(kind, { ...selection, limit: LIST_PAGE, continueToken, signal })
      objects.push(...page.items)
      if (!page.continueToken) return [objects, page.resourceVersion]
      continueToken = page.continueToken
    }
  }

  function takeState(objects: readonly Readonly<Stored<T>>[], resourceVersion: string): void {
    if (isOlder(resourceVersion, newestSeen) && ++olderStates < OLDER_STATES_BELIEVED) {
      throw new Error(
        `the list at version ${resourceVersion} is older than version ${newestSeen}, which was already seen`,
      )
    }
    olderStates = 0
    isServed = true
    version = resourceVersion
    newestSeen = resourceVersion
    sink.replace(objects, resourceVersion)
  }

  function take(event: WatchEvent<T>): void {
    isServed = true
    if (event.type === 'bookmark') {
      version = event.resourceVersion
      if (isOlder(newestSeen, version)) newestSeen = version
      sink.progressed(version)
      return
    }
    // One commit can change several objects in one version, and the stream can break between two of them: a version is
    // complete only when a newer one arrives. Resuming one version early repeats a few events, which the sink drops.
    const { resourceVersion } = event.object.metadata
    if (isOlder(newestSeen, resourceVersion)) {
      version = newestSeen
      newestSeen = resourceVersion
    }
    sink.changed(event)
  }
}

/** resourceVersions are decimal numbers of any length. */
export const isOlder = (a: string, b: string): boolean => (a.length === b.length ? a < b : a.length < b.length)

class NoWatchList extends Error {}

/** Answers of servers without WatchList: 4xx if the parameter is unknown or forbidden, 500 if their etcd is too old. */
const WATCH_LIST_REFUSED = [400, 403, 405, 422, 500]

const isUnknownVersion = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.code === 410 || error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') === true)

const retryAfterMs = (error: unknown): number =>
  error instanceof ApiError ? (error.details?.retryAfterSeconds ?? 0) * 1_000 : 0
