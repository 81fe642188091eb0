// What every controller is made of: watched caches say which keys may have changed, a work queue hands each key to one
// worker at a time, and `reconcile` moves that key closer to what is wanted. The event that woke it is not passed on.
import type { KubeObject } from '../api/kind.ts'
import type { Cache } from './cache.ts'
import type { ObjectKey } from './object-key.ts'
import { createWorkQueue, type Reconcile, type WorkQueue, type WorkQueueOptions } from './work-queue.ts'

export interface Source<T extends KubeObject = any> {
  readonly cache: Cache<T>
  /** The keys a change concerns; asked about the object before and after it. Must not throw. */
  keysOf(object: Readonly<T>): Iterable<ObjectKey>
  /** Whether an update matters at all. Default: every one does. */
  matters?(next: Readonly<T>, old: Readonly<T>): boolean
}

export interface ControllerOptions extends WorkQueueOptions {
  readonly sources: readonly Source[]
  readonly reconcile: Reconcile
  /** Caches that are read but wake nobody; they too are synced before the first reconcile. */
  readonly reads?: readonly Cache<any>[]
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
  const { name, sources, reads = [], reconcile } = options
  const queue = createWorkQueue(options)
  return {
    name,
    queue,
    async run(signal) {
      const stops = sources.map((from) => feed(from, queue))
      try {
        // A reconcile that sees half the world would undo the other half.
        const caches = new Set([...sources.map(({ cache }) => cache), ...reads])
        const synced = await Promise.all([...caches].map((cache) => cache.whenSynced(signal)))
        if (synced.every(Boolean)) await queue.run(reconcile, signal)
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function feed({ cache, keysOf, matters }: Source, queue: WorkQueue): () => void {
  const addAll = (...objects: any[]) => {
    for (const key of new Set(objects.flatMap((object) => [...keysOf(object)]))) queue.add(key)
  }
  return cache.subscribe({
    added: (object) => addAll(object),
    updated: (next, old) => {
      if (matters && !matters(next, old)) return
      addAll(old, next) // whoever it concerned before must learn that it no longer does
    },
    deleted: (object) => addAll(object),
  })
}
