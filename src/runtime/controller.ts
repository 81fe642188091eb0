// A controller: changes in caches enqueue keys, a work queue passes each key to one worker at a time, and `reconcile` brings
// the object of the key closer to its spec. `reconcile` receives the key and not the event.
import type { KubeObject, Stored } from '../api/kind.ts'
import type { ObjectKey } from '../client/object-key.ts'
import type { Cache } from './cache.ts'
import type { ClientMetrics } from './metrics.ts'
import { isRetryRequested } from './operations/retry-request.ts'
import { type ControllerOperation, type ObjectCache, subjectOfKey } from './operations/subject-of-key.ts'
import { createWorkQueue, type Reconcile, type WorkQueue, type WorkQueueOptions } from './work-queue.ts'

export interface Source<T extends KubeObject = KubeObject> {
  readonly cache: Cache<T>
  /** Returns the keys that a change concerns. Called with the object before and after an update. Must not throw. */
  keysOf(object: Readonly<Stored<T>>): Iterable<ObjectKey>
  /** Whether an update enqueues keys. Default: every update does. An update that requests a retry also retries waiting keys. */
  matters?(next: Readonly<Stored<T>>, old: Readonly<Stored<T>>): boolean
  /**
   * Whether there may be work for an object in this state. If there is none before and after a change, the change enqueues
   * only keys whose reconcile is not complete. A deletion enqueues all keys. Must depend on the object alone, or on state
   * whose changes enqueue the key. Default: there may always be work.
   */
  mayNeedReconcile?(object: Readonly<Stored<T>>): boolean
  /** Whether the kind may be disabled on the server. If it is disabled, the controller starts without this cache. */
  readonly mayBeDisabled?: boolean
}

export interface ControllerOptions extends WorkQueueOptions {
  readonly sources: readonly Source[]
  readonly reconcile: Reconcile
  /** Caches that are read but enqueue no keys. They, too, are synced before the first reconcile. */
  readonly reads?: readonly Cache<KubeObject>[]
  /** Creates the observer of the queue, which replaces `observer`, and lists the queue's operations. */
  readonly metrics?: Partial<Pick<ClientMetrics, 'queueObserver' | 'operations'>>
  /** Describes the operations of the queue for the list. Default: they are not listed. */
  readonly operation?: ControllerOperation
  /** Called before a key is retried on request. Ends delays that the controller stores outside the queue. */
  onRetry?(key: ObjectKey): void
}

export interface Controller {
  readonly name: string
  readonly queue: WorkQueue
  /** Runs until the signal is aborted and the last reconcile has settled. Does not run or stop the caches. */
  run(signal: AbortSignal): Promise<void>
}

/** Returns its argument. Infers one type for the cache and the functions of a source. */
export const source = <T extends KubeObject>(options: Source<T>): Source<T> => options

export function createController(options: ControllerOptions): Controller {
  const { name, sources, reads = [], reconcile, metrics, operation } = options
  const subjectCache = operation?.cache ?? (sources[0]?.cache as ObjectCache | undefined)
  const operations =
    operation &&
    subjectCache &&
    metrics?.operations?.follow({
      component: operation.component,
      queue: name,
      stateOf: (key) => queue.stateOf(key),
      subjectOf: (key) => subjectOfKey(key, operation, subjectCache),
    })
  const queue: WorkQueue = createWorkQueue({
    ...options,
    ...(metrics?.queueObserver ? { observer: metrics.queueObserver(name) } : {}),
    ...(operations ? { onChange: operations.note, onAttempt: operations.recordAttempt } : {}),
  })
  const retry = (key: ObjectKey) => {
    if (!queue.has(key)) return
    options.onRetry?.(key)
    queue.retryNow(key)
  }
  return {
    name,
    queue,
    async run(signal) {
      const unsubscribes = sources.map((eventSource) => subscribeToSource(eventSource, queue, retry))
      try {
        // With incomplete caches, a reconcile could delete objects that are still in use.
        const syncResults = await Promise.all([
          ...sources.map(({ cache, mayBeDisabled }) =>
            mayBeDisabled ? cache.whenSyncedOrNotServed(signal) : cache.whenSynced(signal),
          ),
          ...reads.map((cache) => cache.whenSynced(signal)),
        ])
        if (syncResults.every(Boolean)) await queue.run(reconcile, signal)
      } finally {
        operations?.stop()
        for (const unsubscribe of unsubscribes) unsubscribe()
      }
    },
  }
}

function subscribeToSource(
  { cache, keysOf, matters, mayNeedReconcile }: Source,
  queue: WorkQueue,
  retry: (key: ObjectKey) => void,
): () => void {
  const addKeys = (keys: Iterable<ObjectKey>, isUnfinishedOnly = false) => {
    for (const key of keys) if (!isUnfinishedOnly || queue.has(key)) queue.add(key)
  }
  return cache.subscribe({
    added: (object) => {
      const isUnfinishedOnly = mayNeedReconcile ? !mayNeedReconcile(object) : false
      if (!isUnfinishedOnly || !queue.isEmpty()) addKeys(keysOf(object), isUnfinishedOnly)
    },
    updated: (next, old) => {
      if (isRetryRequested(next, old)) for (const key of keysOf(next)) retry(key)
      if (matters && !matters(next, old)) return
      const isUnfinishedOnly = mayNeedReconcile ? !mayNeedReconcile(next) && !mayNeedReconcile(old) : false
      if (isUnfinishedOnly && queue.isEmpty()) return
      const keys = new Set(keysOf(next))
      for (const key of keysOf(old)) keys.add(key) // the keys that the object concerned before the update
      addKeys(keys, isUnfinishedOnly)
    },
    deleted: (object) => addKeys(keysOf(object)),
  })
}
