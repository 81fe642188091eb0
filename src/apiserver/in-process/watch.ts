// A watch inside the server's process: the store's changes as events, decoded once and shared with everyone else.
// A reader that falls too far behind gets what is queued and then the end; it resumes from what it has read.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
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

/** A reader that leaves more events unread is cut off; the store replays them when it comes back. */
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
      prefix: collectionPrefix(resource.stored as Kind, namespace),
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

/** With a selector an object also appears when it starts to match and disappears when it stops. */
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
  /** Whole transactions: who is cut off in the middle of one could not tell where to resume. */
  push(events: readonly E[]): void
  /** After what is queued, the reader gets the end, or this error. */
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
