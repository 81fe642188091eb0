// Feeds an index in this process with the entries of a prefix: first those in the store, then their changes. If the store ends
// the watch, the index keeps its state until the entries are loaded again.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import {
  CompactedError,
  type Entry,
  type ListResult,
  type Revision,
  type Store,
  StoreClosedError,
  type Watch,
} from '../store/index.ts'

export interface FollowStoreOptions {
  readonly store: Store
  readonly prefix: string
  /** The plural of the entries in log messages, such as `roles`. */
  readonly description: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /**
   * Called for each loaded entry and for each change. The entry is undefined if the key was deleted. `isLoaded` is true for an entry
   * that was not changed, but loaded with all others.
   */
  onEntry(key: string, entry: Entry | undefined, isLoaded?: boolean): void
  /** Called after entries have been passed to `onEntry`: with the changed keys, or without keys after all were loaded. */
  onApplied?(changedKeys?: readonly string[]): void
}

const RELOAD_DELAY_MS = 1_000
/**
 * The number of entries that are loaded per turn of the event loop. A list of all entries would keep their values in memory together:
 * 200 MB for 100,000 volumes.
 */
const PAGE_ENTRIES = 250

/** Resolves when all entries have been passed to `onEntry`. Continues to follow changes until the signal is aborted. */
export async function followStore(options: FollowStoreOptions): Promise<void> {
  const { store, prefix, description, clock, log, signal, onEntry, onApplied } = options
  let loadedKeys = new Set<string>()
  let watch: Watch | undefined
  signal.addEventListener('abort', () => watch?.close(), { once: true })

  async function load(): Promise<void> {
    const { keys, revision } = await readEntries(PAGE_ENTRIES).catch((error) => {
      // The revision of the first page has been compacted since. That of a single list is kept until it is complete.
      if (error instanceof CompactedError) return readEntries(undefined)
      throw error
    })
    if (signal.aborted) return
    for (const key of loadedKeys) if (!keys.has(key)) onEntry(key, undefined)
    loadedKeys = keys
    watch = store.watch({
      prefix,
      afterRevision: revision,
      onEvents: (events) => {
        for (const { key, entry } of events) {
          if (entry) loadedKeys.add(key)
          else loadedKeys.delete(key)
          onEntry(key, entry)
        }
        onApplied?.(events.map(({ key }) => key))
      },
      onEnd: (error) => reload(error),
    })
    onApplied?.()
  }

  /** Passes all entries of one revision to `onEntry`, in pages of at most `limit`. */
  async function readEntries(limit: number | undefined): Promise<{ keys: Set<string>; revision: Revision }> {
    const keys = new Set<string>()
    let page: ListResult | undefined
    do {
      if (page) await clock.nextTurn()
      page = await store.list({ prefix, limit, afterKey: page?.entries.at(-1)?.key, atRevision: page?.revision })
      if (signal.aborted) break
      for (const entry of page.entries) {
        keys.add(entry.key)
        loadedKeys.add(entry.key)
        onEntry(entry.key, entry, true)
      }
    } while (page.hasMore)
    return { keys, revision: page.revision }
  }

  function reload(error: unknown): void {
    if (signal.aborted || error instanceof StoreClosedError) return
    log.warn({ reason: (error as Error).message }, `the watch of ${description} ended; loading them again`)
    clock.after(RELOAD_DELAY_MS, () => void load().catch(reload))
  }

  await load()
}
