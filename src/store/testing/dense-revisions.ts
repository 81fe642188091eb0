// Wraps a store whose revisions have gaps (etcd) so that its revisions increase by one, as store.contract.ts expects.
// The wrapper watches the store and numbers the writes. `DenseRevisions` outlives the store, so that the numbers stay
// the same when the store is reopened.
import {
  CompactedError,
  type Entry,
  FutureRevisionError,
  type ListOptions,
  type Revision,
  type Store,
  type StoreEvent,
  type TransactionView,
  type WatchOptions,
} from '../store.ts'

export class DenseRevisions {
  /** The store's revision of every write so far, in order. */
  readonly #storeRevisions: Revision[] = []

  get newest(): Revision {
    return this.#storeRevisions.at(-1) ?? 0
  }

  add(revision: Revision): void {
    if (revision > this.newest) this.#storeRevisions.push(revision)
  }

  toDense(revision: Revision): Revision {
    let low = 0
    let high = this.#storeRevisions.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#storeRevisions[middle] as Revision) <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Returns the revision of the store for a dense revision, or a future revision if it does not exist yet. */
  toSparse(denseRevision: Revision): Revision {
    return denseRevision === 0 ? 0 : (this.#storeRevisions[denseRevision - 1] ?? Number.MAX_SAFE_INTEGER)
  }
}

export function withDenseRevisions(store: Store, mapping: DenseRevisions): Store {
  const follower = store.watch({
    prefix: '',
    afterRevision: mapping.newest,
    onEvents: (events) => {
      for (const { revision } of events) mapping.add(revision)
    },
    onEnd: () => {},
  })

  async function waitForDenseRevision(revision: Revision): Promise<Revision> {
    while (follower.revision < revision) await new Promise((resolve) => setImmediate(resolve))
    return mapping.toDense(revision)
  }

  const entries = new WeakMap<Entry, Entry>()
  function entryOf(entry: Entry): Entry {
    const { modRevision, createRevision } = entry
    const convertedEntry = entries.get(entry) ?? {
      ...entry,
      modRevision: mapping.toDense(modRevision),
      createRevision: mapping.toDense(createRevision),
    }
    entries.set(entry, convertedEntry)
    return convertedEntry
  }

  const events = new WeakMap<StoreEvent, StoreEvent>()
  function eventOf(event: StoreEvent): StoreEvent {
    const { revision, entry, previous } = event
    const convertedEvent = events.get(event) ?? {
      ...event,
      revision: mapping.toDense(revision),
      ...(entry && { entry: entryOf(entry) }),
      ...(previous && { previous: entryOf(previous) }),
    }
    events.set(event, convertedEvent)
    return convertedEvent
  }

  function errorOf(error: unknown): unknown {
    if (error instanceof CompactedError) return new CompactedError(mapping.toDense(error.compactedRevision))
    if (error instanceof FutureRevisionError)
      return new FutureRevisionError(error.requestedRevision, mapping.toDense(error.newestRevision))
    return error
  }

  return {
    get revision() {
      return mapping.toDense(store.revision)
    },
    async get(key) {
      const entry = await store.get(key)
      await waitForDenseRevision(entry?.modRevision ?? 0)
      return entry && entryOf(entry)
    },
    async list({ atRevision, ...options }: ListOptions) {
      const sparseRevision = atRevision === undefined ? undefined : mapping.toSparse(atRevision)
      const list = await store
        .list({ ...options, atRevision: sparseRevision })
        .catch((error) => Promise.reject(errorOf(error)))
      const revision = await waitForDenseRevision(list.revision)
      return { ...list, revision, entries: list.entries.map(entryOf) }
    },
    async transact(decide) {
      const view = (storeView: TransactionView): TransactionView => ({
        get: (key: string) => {
          const entry = storeView.get(key)
          return entry && entryOf(entry)
        },
        list: (prefix) => storeView.list(prefix).map(entryOf),
      })
      const { revision, revisions } = await store.transact((storeView) => decide(view(storeView)))
      const newestRevision = await waitForDenseRevision(revision)
      return {
        revision: newestRevision,
        revisions: revisions.map((writeRevision) => (writeRevision === 0 ? 0 : mapping.toDense(writeRevision))),
      }
    },
    watch({ prefix, afterRevision, onEvents, onEnd }: WatchOptions) {
      try {
        const watch = store.watch({
          prefix,
          afterRevision: mapping.toSparse(afterRevision),
          onEvents: (batch) => onEvents(batch.map(eventOf)),
          onEnd: (reason) => onEnd(errorOf(reason) as Error),
        })
        return {
          get revision() {
            return mapping.toDense(watch.revision)
          },
          close: () => watch.close(),
        }
      } catch (error) {
        throw errorOf(error)
      }
    },
    stats() {
      const stats = store.stats()
      const compactedRevision = mapping.toDense(stats.compactedRevision)
      return { ...stats, revision: mapping.toDense(stats.revision), compactedRevision, watchers: stats.watchers - 1 }
    },
    close: () => store.close(),
  }
}
