// Watches for the in-process client: events of the store with shared, decoded objects. The watch of a reader that falls too
// far behind ends after the queued events; the reader resumes from its last resourceVersion.
import type { KubeObject, Stored } from '../../api/kind.ts'
import { deepFreeze } from '../../base/freeze.ts'
import type { WatchEvent, WatchRequest } from '../../client/client.ts'
import type { StoreEvent, Watch } from '../../store/index.ts'
import { parseListOptions } from '../http/options.ts'
import { collectionPrefix } from '../keys.ts'
import { type ObjectDeps, viewOf } from '../objects/object-deps.ts'
import { selectorOf } from '../objects/selector.ts'
import { storeOf, waitForRevision } from '../objects/wait-for-revision.ts'
import type { Resource } from '../resources.ts'
import { type ListedObjects, listObjects } from '../verbs/list.ts'
import { toApiError } from './errors.ts'

/** Number of unread events at which a watch ends. The reader resumes it from the store's history. */
export const WATCH_BACKLOG_EVENTS_MAX = 10_000
const BOOKMARK_INTERVAL_MS = 60_000
/** Number of entries that an initial list holds in memory at a time, and decodes per turn of the event loop. All pages are of one revision. */
const INITIAL_PAGE_SIZE = 250

export async function* watchInProcess<T extends KubeObject>(
  deps: ObjectDeps,
  resourceOf: () => Resource,
  request: WatchRequest,
): AsyncGenerator<WatchEvent<T>> {
  if (request.signal.aborted) return
  const backlog = createBacklog<WatchEvent<T>>()
  const timers: (() => void)[] = []
  const endWatch = () => backlog.end()
  request.signal.addEventListener('abort', endWatch, { once: true })
  let watch: Watch | undefined
  try {
    const resource = resourceOf()
    const options = parseListOptions(watchQuery(request), true)
    const namespace = resource.kind.namespaced ? (request.namespace ?? '') : ''
    const matches = selectorOf(resource, options)
    const frozenView = (storedObject: Readonly<KubeObject>): Stored<T> => deepFreeze(viewOf(resource, storedObject))
    const version = Number(request.resourceVersion ?? 0)
    const store = storeOf(deps, resource)
    await waitForRevision({ store, clock: deps.clock }, version)

    let startRevision = version
    if (request.sendInitialEvents ?? version === 0) {
      const listOptions = {
        ...options,
        resourceVersion: undefined,
        resourceVersionMatch: undefined,
        sendInitialEvents: undefined,
      }
      // With a selector, the list has decoded the entries before.
      const decode = matches ? deps.objects.decode : deps.objects.decodeOnce
      let page: ListedObjects | undefined
      do {
        const continueToken: string = page?.continueToken ?? ''
        page = await listObjects(deps, resource, namespace, { ...listOptions, limit: INITIAL_PAGE_SIZE, continueToken })
        startRevision = page.revision
        for (const entry of page.entries) yield { type: 'added', object: frozenView(decode(entry)) }
        // Otherwise requests wait until the caches have read all objects, and V8 keeps the lists to which the store has weak references.
        if (page.continueToken) await deps.clock.nextTurn()
      } while (page.continueToken)
      page = undefined // the watch lasts for minutes, and would keep the entries in memory
      if (request.sendInitialEvents) {
        yield { type: 'bookmark', resourceVersion: String(startRevision), endsInitialEvents: true }
      }
    }
    if (request.signal.aborted) return

    watch = store.watch({
      prefix: collectionPrefix(resource.storedKind, namespace),
      afterRevision: startRevision,
      onEvents: (events) => {
        const watchEvents: WatchEvent<T>[] = []
        for (const event of events) {
          const watchEvent = watchEventOf(deps, event, matches)
          if (watchEvent) watchEvents.push({ type: watchEvent.type, object: frozenView(watchEvent.object) })
        }
        backlog.push(watchEvents)
      },
      onEnd: (reason) => backlog.end(toApiError(reason)),
    })
    const { clock } = deps
    const sendBookmark = () => {
      const current = watch!
      backlog.push([{ type: 'bookmark', resourceVersion: String(current.revision), endsInitialEvents: false }])
      timers[0] = clock.after(BOOKMARK_INTERVAL_MS, sendBookmark)
    }
    timers[0] = clock.after(BOOKMARK_INTERVAL_MS, sendBookmark)
    if (request.timeoutSeconds) timers[1] = clock.after(request.timeoutSeconds * 1_000, endWatch)

    for (let event = await backlog.next(); event; event = backlog.take() ?? (await backlog.next())) yield event
  } catch (error) {
    throw toApiError(error)
  } finally {
    watch?.close()
    for (const cancel of timers) cancel?.()
    request.signal.removeEventListener('abort', endWatch)
  }
}

/** Returns "added" for an object that starts to match the selector, and "deleted" for one that stops matching. */
function watchEventOf(
  { objects }: ObjectDeps,
  event: StoreEvent,
  matches: ((object: Readonly<KubeObject>) => boolean) | undefined,
): { type: 'added' | 'modified' | 'deleted'; object: Readonly<KubeObject> } | undefined {
  const current = event.entry && objects.decode(event.entry)
  const didMatch = event.previous !== undefined && (!matches || matches(objects.decode(event.previous)))
  if (current && (!matches || matches(current))) return { type: didMatch ? 'modified' : 'added', object: current }
  if (!didMatch) return undefined
  const previousObject = objects.decode(event.previous!)
  const metadata = { ...previousObject.metadata, resourceVersion: String(event.revision) }
  return { type: 'deleted', object: { ...previousObject, metadata } }
}

function watchQuery({ labelSelector, fieldSelector }: WatchRequest): URLSearchParams {
  const query = new URLSearchParams()
  if (labelSelector) query.set('labelSelector', labelSelector)
  if (fieldSelector) query.set('fieldSelector', fieldSelector)
  return query
}

interface Backlog<E> {
  /** Adds all events of a transaction together, because a watch that ends between them could not be resumed. */
  push(events: readonly E[]): void
  /** Ends the watch after the queued events, or fails it with this error. */
  end(error?: Error): void
  next(): Promise<E | undefined>
  /** Returns the next event if there is one, without a promise. */
  take(): E | undefined
}

function createBacklog<E>(): Backlog<E> {
  let queue: E[] = []
  let readIndex = 0
  let isEnded = false
  let failure: Error | undefined
  let resolveRead: (() => void) | undefined
  const wakeReader = () => {
    resolveRead?.()
    resolveRead = undefined
  }
  function take(): E | undefined {
    if (readIndex === queue.length) return undefined
    const event = queue[readIndex++]!
    if (readIndex === queue.length) {
      queue = []
      readIndex = 0
    }
    return event
  }
  return {
    take,
    push(events) {
      if (isEnded) return
      for (const event of events) queue.push(event)
      if (queue.length - readIndex >= WATCH_BACKLOG_EVENTS_MAX) isEnded = true
      wakeReader()
    },
    end(error) {
      if (isEnded) return
      isEnded = true
      failure = error
      wakeReader()
    },
    async next() {
      for (;;) {
        const event = take()
        if (event) return event
        if (failure) throw failure
        if (isEnded) return undefined
        await new Promise<void>((resolve) => {
          resolveRead = resolve
        })
      }
    },
  }
}
