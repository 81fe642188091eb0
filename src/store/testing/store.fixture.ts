// Test support for stores: writes and reads text values, waits for conditions, and collects and formats events.
import type { ManualClock } from '../../base/manual-clock.ts'
import type { Entry, Revision, Store, StoreEvent, Watch } from '../store.ts'

const TICKS_MAX = 5_000_000 // enough for conditions that depend on a disk or another process

export const bytes = (text: string): Uint8Array => Buffer.from(text)
export const text = (entry: Entry | undefined): string | undefined => entry && Buffer.from(entry.value).toString()

export const put = (store: Store, key: string, value = key) =>
  store.transact(() => [{ put: key, value: bytes(value) }]).then(({ revision }) => revision)

export const remove = (store: Store, key: string) =>
  store.transact(() => [{ delete: key }]).then(({ revision }) => revision)

/**
 * Adds an empty transaction to the next batch. The batch is then not that of a single transaction, which an LMDB store commits in
 * the thread of the event loop.
 */
export const joinNextBatch = (store: Store): void => void store.transact(() => []).catch(() => {})

/** Polls the condition once per tick of the event loop until it is true. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  description = 'the condition',
): Promise<void> {
  for (let tick = 0; tick < TICKS_MAX; tick++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`timed out waiting for ${description}`)
}

/** Advances the clock in small steps until the condition is true. */
export const advanceUntil = (clock: ManualClock, condition: () => boolean | Promise<boolean>) =>
  waitUntil(async () => {
    if (await condition()) return true
    await clock.advance(10)
    return false
  })

export interface CollectedEvents {
  readonly events: StoreEvent[]
  readonly watch: Watch
  /** The reasons passed to onEnd, at most one. */
  readonly endReasons: Error[]
}

export function collectEvents(
  store: Store,
  options: { prefix?: string; afterRevision?: Revision } = {},
): CollectedEvents {
  const events: StoreEvent[] = []
  const endReasons: Error[] = []
  const watch = store.watch({
    prefix: options.prefix ?? '',
    afterRevision: options.afterRevision ?? store.revision,
    onEvents: (batch) => void events.push(...batch),
    onEnd: (reason) => void endReasons.push(reason),
  })
  return { events, watch, endReasons }
}

/** Formats an event as `put a@3=new<old`. */
export function formatEvent({ type, key, revision, entry, previous }: StoreEvent): string {
  return `${type} ${key}@${revision}${entry ? `=${text(entry)}` : ''}${previous ? `<${text(previous)}` : ''}`
}
