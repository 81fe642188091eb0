// Watches one collection of the API server for all tabs that subscribe to it: lists it in pages, watches from the revision of the
// list, watches again when the watch ends, and lists again when its revision has expired. Subscribers are notified of changed
// uids and read the objects from the state, so that a slow subscriber costs a set of uids instead of a queue of objects.
import { ApiError, isExpired, isUnauthorized } from '../../api/status-error.ts'
import type { Random } from '../../base/clock.ts'
import type { ConsoleObject } from '../protocol.ts'
import { createObjectState, type ObjectState } from './object-state.ts'
import { openWatch, type ReadOptions, readListPages } from './read-collection.ts'
import { trimObject } from './trim-object.ts'

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED'

export interface CollectionSubscriber {
  /** The objects of the first list are ADDED as its pages arrive; a later list reports only the differences. */
  onChange(uid: string, type: ChangeType): void
  /** Called when a list is complete, a bookmark has advanced the revision, or a watch works again after an error. */
  onSynced(): void
  onError(error: CollectionError): void
}

export interface CollectionError {
  readonly code: number
  readonly reason: string
  readonly message: string
  /** Absent if the collection is not retried. */
  readonly retryAfterMs?: number
}

export interface WatchedCollection {
  readonly state: ObjectState
  /** The revision of the state. Undefined until the first list is complete. */
  readonly revision: string | undefined
  /** The reason why the collection is not being watched now. */
  readonly error: CollectionError | undefined
  readonly subscribers: Set<CollectionSubscriber>
  /** Runs until the signal is aborted, or an error is final. */
  run(): Promise<void>
}

export interface CollectionOptions extends ReadOptions {
  readonly random: Random
  /** Called after a 401, so that an exec plugin is called again. */
  invalidateCredentials(): void
  /** Throws an ApiError if the console has no memory for more objects. */
  checkMemory(): void
}

const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 15_000
/** A watch that ends earlier counts as a failure, so that a server that ends all watches immediately is not called in a loop. */
const WATCH_MS_MIN = 1_000
/** Responses that a retry would not change. 413 is the console's own limit. */
const FINAL_CODES: ReadonlySet<number> = new Set([400, 403, 404, 405, 413])

export function createWatchedCollection(options: CollectionOptions): WatchedCollection {
  const { clock, random, signal, checkMemory } = options
  const state = createObjectState()
  const subscribers = new Set<CollectionSubscriber>()
  let revision: string | undefined
  /** Whether the next attempt lists. */
  let needsList = true
  let error: CollectionError | undefined
  let failures = 0

  const notifyChange = (uid: string, type: ChangeType) => {
    for (const subscriber of subscribers) subscriber.onChange(uid, type)
  }
  const setSynced = (newRevision: string) => {
    revision = newRevision
    error = undefined
    for (const subscriber of subscribers) subscriber.onSynced()
  }
  const fail = (failure: CollectionError) => {
    error = failure
    for (const subscriber of subscribers) subscriber.onError(failure)
  }

  function put(object: ConsoleObject): void {
    const entry = { json: JSON.stringify(object), revision: Number(object.metadata.resourceVersion) }
    const change = state.put(object.metadata.uid, entry)
    if (change) notifyChange(object.metadata.uid, change)
  }

  function remove(uid: string, json: string, atRevision: number): void {
    if (state.delete(uid, { json, revision: atRevision })) notifyChange(uid, 'DELETED')
  }

  async function list(): Promise<void> {
    const listed = new Set<string>()
    for await (const page of readListPages(options)) {
      for (const object of page.objects) {
        listed.add(object.metadata.uid)
        put(trimObject(object, page.type))
      }
      checkMemory()
      if (!page.isLast) continue
      // Objects of an earlier list that are not in this one were deleted while no watch ran.
      for (const uid of [...state.uids()]) {
        if (!listed.has(uid)) remove(uid, state.get(uid)?.json ?? '', Number(page.resourceVersion))
      }
      state.setListed(Number(page.resourceVersion))
      needsList = false
      setSynced(page.resourceVersion)
    }
  }

  async function watch(from: string): Promise<void> {
    const startedMs = clock.monotonicMs()
    const events = await openWatch(options, from)
    if (error) setSynced(from)
    for await (const event of events) {
      failures = 0
      if (event.type === 'BOOKMARK') {
        if (event.resourceVersion !== revision) setSynced(event.resourceVersion)
        continue
      }
      const object = trimObject(event.object)
      revision = object.metadata.resourceVersion
      if (event.type === 'DELETED') remove(object.metadata.uid, JSON.stringify(object), Number(revision))
      else put(object)
      if (event.type === 'ADDED') checkMemory()
    }
    if (clock.monotonicMs() - startedMs < WATCH_MS_MIN) await wait()
  }

  const nextDelayMs = () => {
    const delayMs = Math.min(RETRY_MS_MIN * 2 ** failures++, RETRY_MS_MAX)
    return Math.round(delayMs * (0.75 + random() / 2))
  }
  const wait = (delayMs = nextDelayMs()) => clock.sleep(delayMs, signal).catch(() => {})

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        if (needsList) await list()
        await watch(revision as string)
      } catch (failure) {
        if (signal.aborted) return
        if (!(failure instanceof ApiError)) throw failure
        if (isUnauthorized(failure)) options.invalidateCredentials()
        const { code, reason, message } = failure
        if (FINAL_CODES.has(code)) return fail({ code, reason, message })
        if (isExpired(failure)) {
          needsList = true
          if (failures++ === 0) continue
        }
        const retryAfterMs = Math.max(nextDelayMs(), (failure.details?.retryAfterSeconds ?? 0) * 1_000)
        fail({ code, reason, message, retryAfterMs })
        await wait(retryAfterMs)
      }
    }
  }

  return {
    state,
    get revision() {
      return revision
    },
    get error() {
      return error
    },
    subscribers,
    run,
  }
}
