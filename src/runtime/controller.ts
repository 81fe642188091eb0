// What every controller is made of: watched caches say which keys may have changed, a work queue hands each key to one
// worker at a time, and `reconcile` moves that key closer to what is wanted. The event that woke it is not passed on.
import type { KubeObject, Stored } from '../api/kind.ts'
import type { ObjectKey } from '../client/object-key.ts'
import type { Cache } from './cache.ts'
import type { ClientMetrics } from './metrics.ts'
import { createWorkQueue, type Reconcile, type WorkQueue, type WorkQueueOptions } from './work-queue.ts'

export interface Source<T extends KubeObject = KubeObject> {
  readonly cache: Cache<T>
  /** The keys a change concerns; asked about the object before and after it. Must not throw. */
  keysOf(object: Readonly<Stored<T>>): Iterable<ObjectKey>
  /** Whether an update matters at all. Default: every one does. */
  matters?(next: Readonly<Stored<T>>, old: Readonly<Stored<T>>): boolean
  /**
   * Whether there can be anything to do about an object as it is. One that has nothing to be done wakes only keys that
   * are not done anyway; the end of an object always wakes. Must follow from the object, or from what wakes by itself.
   * Default: there always can.
   */
  concerns?(object: Readonly<Stored<T>>): boolean
  /** The kind may be switched off on the server: then there is none of it, and the work does not wait for it. */
  readonly mayBeOff?: boolean
}

export interface ControllerOptions extends WorkQueueOptions {
  readonly sources: readonly Source[]
  readonly reconcile: Reconcile
  /** Caches that are read but wake nobody; they too are synced before the first reconcile. */
  readonly reads?: readonly Cache<KubeObject>[]
  /** Counts what its queue does, in place of `observer`. */
  readonly metrics?: Pick<ClientMetrics, 'queueObserver'>
}

export interface Controller {
  readonly name: string
  readonly queue: WorkQueue
  /** Settles when the last reconcile has. The caches are run by whoever made them. */
  run(signal: AbortSignal): Promise<void>
}

/** Names the types of a source's cache and functions to each other. */
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
        // A reconcile that sees half the world would undo the other half.
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
  const addAll = (object: any) => {
    for (const key of keysOf(object)) queue.add(key)
  }
  const addUndone = (object: any) => {
    if (queue.isEmpty()) return
    for (const key of keysOf(object)) if (queue.has(key)) queue.add(key)
  }
  return cache.subscribe({
    added: (object) => (!concerns || concerns(object) ? addAll : addUndone)(object),
    updated: (next, old) => {
      if (matters && !matters(next, old)) return
      const add = !concerns || concerns(next) || concerns(old) ? addAll : addUndone
      add(old) // whoever it concerned before must learn that it no longer does
      add(next)
    },
    deleted: addAll,
  })
}
