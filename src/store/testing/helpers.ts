// Small words for store tests: bytes and text, waiting for a condition, collecting what a watch delivers.
import type { ManualClock } from '../../base/manual-clock.ts'
import type { Entry, Revision, Store, StoreEvent, Watch } from '../store.ts'

const TURNS_MAX = 5_000_000 // some of what is waited for takes a disk or another process

export const bytes = (text: string): Uint8Array => Buffer.from(text)
export const text = (entry: Entry | undefined): string | undefined => entry && Buffer.from(entry.value).toString()

export const put = (store: Store, key: string, value = key) =>
  store.transact(() => [{ put: key, value: bytes(value) }]).then(({ revision }) => revision)

export const remove = (store: Store, key: string) =>
  store.transact(() => [{ delete: key }]).then(({ revision }) => revision)

/** Turns the event loop until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, what = 'the condition'): Promise<void> {
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`${what} did not come true`)
}

/** Lets time pass, in small steps, until the condition holds. */
export const passTimeUntil = (clock: ManualClock, condition: () => boolean | Promise<boolean>) =>
  until(async () => {
    if (await condition()) return true
    await clock.advance(10)
    return false
  })

export interface Collected {
  readonly events: StoreEvent[]
  readonly watch: Watch
  /** Why the store ended it. */
  readonly ended: Error[]
}

export function collect(store: Store, options: { prefix?: string; afterRevision?: Revision } = {}): Collected {
  const events: StoreEvent[] = []
  const ended: Error[] = []
  const watch = store.watch({
    prefix: options.prefix ?? '',
    afterRevision: options.afterRevision ?? store.revision,
    onEvents: (more) => void events.push(...more),
    onEnd: (reason) => void ended.push(reason),
  })
  return { events, watch, ended }
}

/** An event in one line: `put a@3=new<old`. */
export function show({ type, key, revision, entry, previous }: StoreEvent): string {
  return `${type} ${key}@${revision}${entry ? `=${text(entry)}` : ''}${previous ? `<${text(previous)}` : ''}`
}
