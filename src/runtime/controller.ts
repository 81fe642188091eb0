// A controller: watched caches say which keys may have changed, a work queue hands each key to one worker at a time, and
// `reconcile` moves the key closer to its spec. It gets the key, not the event.
import type { KubeObject, Stored } from '../api/kind.ts'
import type { ObjectKey } from '../client/object-key.ts'
import type { Cache } from './cache.ts'
import type { ClientMetrics } from './metrics.ts'
import { createWorkQueue, type Reconcile, type WorkQueue, type WorkQueueOptions } from './work-queue.ts'

export interface Source<T extends KubeObject = KubeObject> {
  readonly cache: Cache<T>
  /** The keys a change concerns; called with the object before and after the change. Must not throw. */
  keysOf(object: Readonly<Stored<T>>): Iterable<ObjectKey>
  /** Filters updates. Default: every update matters. */
  matters?(next: Readonly<Stored<T>>, old: Readonly<Stored<T>>): boolean
  /**
   * Whether there can be work for an object in this state. Without, its change enqueues only keys that are not done anyway;
   * a deletion always enqueues. Must depend on the object alone, or on state that enqueues the key itself.
   * Default: there can always be work.
   */
  concerns?(object: Readonly<Stored<T>>): boolean
  /** The server may not serve the kind: then the controller does not wait for its cache. */
  readonly mayBeOff?: boolean
}

export interface ControllerOptions extends WorkQueueOptions {
  readonly sources: readonly Source[]
  readonly reconcile: Reconcile
  /** Caches that are read and enqueue nothing; they too are synced before the first reconcile. */
  readonly reads?: readonly Cache<KubeObject>[]
  /** Observes the queue, in place of `observer`. */
  readonly metrics?: Pick<ClientMetrics, 'queueObserver'>
}

export interface Controller {
  readonly name: string
  readonly queue: WorkQueue
  /** Settles when the last reconcile has. Does not run or stop the caches. */
  run(signal: AbortSignal): Promise<void>
}

/** Infers one type for the cache and the functions of a source. */
export const source = <T extends KubeObject>(of: Source<T>): Source<T> => of

export function createController(options: ControllerOptions): Controller {
  const { name, sources, reads = [], reconcile, metrics } = options
  const queue = createWorkQueue(metrics ? { ...options, observer: metrics.queueObserver(name) } : options)
  return {
    name,
    queue,
    async run(signal) {
      const stops = sources.map((from) => feed(from, queue))
      try {
        // A reconcile with incomplete caches could undo what it does not see.
        const seen = await Promise.all([
          ...sources.map(({ cache, mayBeOff }) => (mayBeOff ? cache.whenAnswered(signal) : cache.whenSynced(signal))),
          ...reads.map((cache) => cache.whenSynced(signal)),
        ])
        if (seen.every(Boolean)) await queue.run(reconcile, signal)
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function feed({ cache, keysOf, matters, concerns }: Source, queue: WorkQueue): () => void {
  const addAll = (object: Parameters<Source['keysOf']>[0]) => {
    for (const key of keysOf(object)) queue.add(key)
  }
  const addUndone = (object: Parameters<Source['keysOf']>[0]) => {
    if (queue.isEmpty()) return
    for (const key of keysOf(object)) if (queue.has(key)) queue.add(key)
  }
  return cache.subscribe({
    added: (object) => (!concerns || concerns(object) ? addAll : addUndone)(object),
    updated: (next, old) => {
      if (matters && !matters(next, old)) return
      const add = !concerns || concerns(next) || concerns(old) ? addAll : addUndone
      add(old) // keys it no longer concerns
      add(next)
    },
    deleted: addAll,
  })
}
