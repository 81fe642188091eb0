// Watches of the in-process client: changes of the store as events with shared, decoded objects. The watch of a reader that
// falls too far behind ends after the queued events; the reader resumes from the last resourceVersion it has read.
import type { KubeObject, Stored } from '../../api/kind.ts'
import { deepFreeze } from '../../base/freeze.ts'
import type { WatchEvent, WatchRequest } from '../../client/client.ts'
import type { StoreEvent, Watch } from '../../store/index.ts'
import { parseListOptions } from '../http/options.ts'
import { collectionPrefix } from '../keys.ts'
import { type ObjectDeps, viewOf } from '../objects/object-deps.ts'
import { waitForRevision } from '../objects/read.ts'
import { selectorOf } from '../objects/selector.ts'
import type { Resource } from '../resources.ts'
import { listObjects } from '../verbs/list.ts'
import { explainStoreError } from './errors.ts'

/** The watch of a reader with more unread events ends; the store replays them when it watches again. */
export const WATCH_BACKLOG_EVENTS_MAX = 10_000
const BOOKMARK_INTERVAL_MS = 60_000

export async function* watchInProcess<T extends KubeObject>(
  deps: ObjectDeps,
  resourceOf: () => Resource,
  request: WatchRequest,
): AsyncGenerator<WatchEvent<T>> {
  if (request.signal.aborted) return
  const backlog = createBacklog<WatchEvent<T>>()
  const cancels: (() => void)[] = []
  const stop = () => backlog.end()
  request.signal.addEventListener('abort', stop, { once: true })
  let watch: Watch | undefined
  try {
    const resource = resourceOf()
    const options = parseListOptions(watchQuery(request), true)
    const namespace = resource.kind.namespaced ? (request.namespace ?? '') : ''
    const matches = selectorOf(resource, options)
    const show = (stored: Readonly<KubeObject>): Stored<T> => deepFreeze(viewOf(resource, stored))
    const version = Number(request.resourceVersion ?? 0)
    await waitForRevision(deps, version)

    let after = version
    if (request.sendInitialEvents ?? version === 0) {
      const everything = { ...options, resourceVersion: undefined, match: undefined, sendInitialEvents: undefined }
      const { entries, revision } = await listObjects(deps, resource, namespace, everything)
      after = revision
      for (const entry of entries) yield { type: 'added', object: show(deps.objects.decode(entry)) }
      if (request.sendInitialEvents) {
        yield { type: 'bookmark', resourceVersion: String(revision), endsInitialEvents: true }
      }
    }
    if (request.signal.aborted) return

    watch = deps.store.watch({
      prefix: collectionPrefix(resource.stored, namespace),
      afterRevision: after,
      onEvents: (events) => {
        const shown: WatchEvent<T>[] = []
        for (const event of events) {
          const one = eventOf(deps, event, matches)
          if (one) shown.push({ type: one.type, object: show(one.object) })
        }
        backlog.push(shown)
      },
      onEnd: (reason) => backlog.end(explainStoreError(reason)),
    })
    const { clock } = deps
    const bookmark = () => {
      const current = watch!
      backlog.push([{ type: 'bookmark', resourceVersion: String(current.revision), endsInitialEvents: false }])
      cancels[0] = clock.after(BOOKMARK_INTERVAL_MS, bookmark)
    }
    cancels[0] = clock.after(BOOKMARK_INTERVAL_MS, bookmark)
    if (request.timeoutSeconds) cancels[1] = clock.after(request.timeoutSeconds * 1_000, stop)

    for (let event = await backlog.next(); event; event = await backlog.next()) yield event
  } catch (error) {
    throw explainStoreError(error)
  } finally {
    watch?.close()
    for (const cancel of cancels) cancel?.()
    request.signal.removeEventListener('abort', stop)
  }
}

/** An object that starts to match the selector is added; one that stops matching is deleted. */
function eventOf(
  { objects }: ObjectDeps,
  event: StoreEvent,
  matches: ((object: Readonly<KubeObject>) => boolean) | undefined,
): { type: 'added' | 'modified' | 'deleted'; object: Readonly<KubeObject> } | undefined {
  const next = event.entry && objects.decode(event.entry)
  const before = event.previous !== undefined && (!matches || matches(objects.decode(event.previous)))
  if (next && (!matches || matches(next))) return { type: before ? 'modified' : 'added', object: next }
  if (!before) return undefined
  const old = objects.decode(event.previous!)
  const metadata = { ...old.metadata, resourceVersion: String(event.revision) }
  return { type: 'deleted', object: { ...old, metadata } }
}

function watchQuery({ labelSelector, fieldSelector }: WatchRequest): URLSearchParams {
  const query = new URLSearchParams()
  if (labelSelector) query.set('labelSelector', labelSelector)
  if (fieldSelector) query.set('fieldSelector', fieldSelector)
  return query
}

interface Backlog<E> {
  /** All events of a transaction at once: a watch that ends between them could not be resumed. */
  push(events: readonly E[]): void
  /** After the queued events, the watch ends, or fails with this error. */
  end(error?: Error): void
  next(): Promise<E | undefined>
}

function createBacklog<E>(): Backlog<E> {
  let queue: E[] = []
  let taken = 0
  let ended = false
  let failure: Error | undefined
  let wake: (() => void) | undefined
  const signal = () => {
    wake?.()
    wake = undefined
  }
  return {
    push(events) {
      if (ended) return
      for (const event of events) queue.push(event)
      if (queue.length - taken >= WATCH_BACKLOG_EVENTS_MAX) ended = true
      signal()
    },
    end(error) {
      if (ended) return
      ended = true
      failure = error
      signal()
    },
    async next() {
      for (;;) {
        if (taken < queue.length) {
          const event = queue[taken++]!
          if (taken === queue.length) {
            queue = []
            taken = 0
          }
          return event
        }
        if (failure) throw failure
        if (ended) return undefined
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}
