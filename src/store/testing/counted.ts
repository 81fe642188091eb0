// Shows a store whose revisions leave gaps as one whose revisions rise by one, so that the contract, which counts, can
// be asked of it. It follows the store and numbers writes as they come; `Counts` outlives the store, as a place
// does that is opened again.
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

export class Counts {
  /** The store's revisions, of every write so far, in order. */
  readonly #known: Revision[] = []

  get newest(): Revision {
    return this.#known.at(-1) ?? 0
  }

  add(revision: Revision): void {
    if (revision > this.newest) this.#known.push(revision)
  }

  counted(revision: Revision): Revision {
    let low = 0
    let high = this.#known.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#known[middle] as Revision) <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  /** A number that was not counted yet stays in the future. */
  original(counted: Revision): Revision {
    return counted === 0 ? 0 : (this.#known[counted - 1] ?? Number.MAX_SAFE_INTEGER)
  }
}

export function countedStore(store: Store, counts: Counts): Store {
  const follower = store.watch({
    prefix: '',
    afterRevision: counts.newest,
    onEvents: (events) => {
      for (const { revision } of events) counts.add(revision)
    },
    onEnd: () => {},
  })

  async function followed(revision: Revision): Promise<Revision> {
    while (follower.revision < revision) await new Promise((resolve) => setImmediate(resolve))
    return counts.counted(revision)
  }

  const entries = new WeakMap<Entry, Entry>()
  function entryOf(entry: Entry): Entry {
    const { modRevision, createRevision } = entry
    const known = entries.get(entry) ?? {
      ...entry,
      modRevision: counts.counted(modRevision),
      createRevision: counts.counted(createRevision),
    }
    entries.set(entry, known)
    return known
  }

  const events = new WeakMap<StoreEvent, StoreEvent>()
  function eventOf(event: StoreEvent): StoreEvent {
    const { revision, entry, previous } = event
    const known = events.get(event) ?? {
      ...event,
      revision: counts.counted(revision),
      ...(entry && { entry: entryOf(entry) }),
      ...(previous && { previous: entryOf(previous) }),
    }
    events.set(event, known)
    return known
  }

  function errorOf(error: unknown): unknown {
    if (error instanceof CompactedError) return new CompactedError(counts.counted(error.compactedRevision))
    if (error instanceof FutureRevisionError) return new FutureRevisionError(error.asked, counts.counted(error.newest))
    return error
  }

  return {
    get revision() {
      return counts.counted(store.revision)
    },
    async get(key) {
      const entry = await store.get(key)
      await followed(entry?.modRevision ?? 0)
      return entry && entryOf(entry)
    },
    async list({ atRevision, ...options }: ListOptions) {
      const at = atRevision === undefined ? undefined : counts.original(atRevision)
      const list = await store.list({ ...options, atRevision: at }).catch((error) => Promise.reject(errorOf(error)))
      const revision = await followed(list.revision)
      return { ...list, revision, entries: list.entries.map(entryOf) }
    },
    async transact(decide) {
      const view = (inner: TransactionView): TransactionView => ({
        get: (key: string) => {
          const entry = inner.get(key)
          return entry && entryOf(entry)
        },
        list: (prefix) => inner.list(prefix).map(entryOf),
      })
      const { revision, revisions } = await store.transact((inner) => decide(view(inner)))
      const newest = await followed(revision)
      return { revision: newest, revisions: revisions.map((each) => (each === 0 ? 0 : counts.counted(each))) }
    },
    watch({ prefix, afterRevision, onEvents, onEnd }: WatchOptions) {
      try {
        const watch = store.watch({
          prefix,
          afterRevision: counts.original(afterRevision),
          onEvents: (more) => onEvents(more.map(eventOf)),
          onEnd: (reason) => onEnd(errorOf(reason) as Error),
        })
        return {
          get revision() {
            return counts.counted(watch.revision)
          },
          close: () => watch.close(),
        }
      } catch (error) {
        throw errorOf(error)
      }
    },
    stats() {
      const stats = store.stats()
      const compactedRevision = counts.counted(stats.compactedRevision)
      return { ...stats, revision: counts.counted(stats.revision), compactedRevision, watchers: stats.watchers - 1 }
    },
    close: () => store.close(),
  }
}
