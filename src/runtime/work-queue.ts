// The queue of keys to reconcile. A key is queued once however often it is added, is processed by one worker at a time, and is
// retried with backoff. Keeps the reason why a key is not done.
//
//   add → ready → running → done
//           ↑        │ retry, throw → waiting (timer) → ready
//           └────────┘ added meanwhile                          stuck: nothing until the next add
import type { Clock, Random } from '../base/clock.ts'
import { Fifo } from '../base/fifo.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { ObjectKey } from '../client/object-key.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import type { Outcome } from './outcome.ts'

export interface WorkQueueOptions {
  /** The label `name` of its metrics. */
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** Keys processed concurrently. Default 10. */
  readonly workers?: number
  /** Per key, after failures and retries without a time. Default: 50 ms, doubling up to 5 minutes. */
  readonly backoff?: Backoff
  /** Limits the retries of all keys together. Default: 50 per second, burst 500. */
  readonly retriesPerSecond?: number
  readonly retryBurst?: number
  readonly observer?: WorkQueueObserver
}

/** For the metrics in metrics.ts. */
export interface WorkQueueObserver {
  added(): void
  started(waitedSeconds: number): void
  finished(workedSeconds: number): void
  retried(): void
}

export type Reconcile = (key: ObjectKey, signal: AbortSignal) => Promise<Outcome>

/** The state of a key; `because` is the reason of the last outcome or the message of the last error. */
export interface Standing {
  readonly key: ObjectKey
  readonly is: 'ready' | 'running' | 'waiting' | 'stuck'
  readonly because?: string
  /** When a waiting key is retried, by the wall clock. */
  readonly nextAtMs?: number
  readonly failures: number
}

export interface WorkQueue {
  readonly name: string
  /** Queues the key now; ends a wait for a retry. */
  add(key: ObjectKey): void
  /** Queues the key after this time, unless it is due earlier. */
  addAfter(key: ObjectKey, ms: number, because?: string): void
  /** Whether the key is not done: ready, running, waiting or stuck. */
  has(key: ObjectKey): boolean
  isEmpty(): boolean
  standing(key: ObjectKey): Standing | undefined
  /** Every key that is not done. */
  standings(): Standing[]
  stats(): WorkQueueStats
  /** Processes keys until the signal fires; settles when the last running key has finished. Waiting keys are dropped. */
  run(reconcile: Reconcile, signal: AbortSignal): Promise<void>
}

export interface WorkQueueStats {
  readonly depth: number
  readonly running: number
  readonly waiting: number
  /** Total age of all running keys, and of the oldest. */
  readonly unfinishedSeconds: number
  readonly longestSeconds: number
}

const WORKERS = 10
const BACKOFF: Backoff = { baseMs: 50, maxMs: 300_000 }
const RETRIES_PER_SECOND = 50
const RETRY_BURST = 500
/** Stuck keys whose reason is kept; beyond this the oldest reason is dropped. The key itself is unaffected. */
export const STUCK_REASONS_MAX = 100_000
const EAGER_FAILURES_MAX = 3
const REASON_CHARACTERS_MAX = 2_000

interface Item {
  readonly key: ObjectKey
  state: 'ready' | 'running' | 'waiting' | 'stuck'
  /** Added while it was running: it runs again. */
  again: boolean
  /** Due time from an `addAfter` while it was running, by the monotonic clock. */
  laterMs: number
  failures: number
  because: string | undefined
  /** Since when it is ready or running, by the monotonic clock. */
  sinceMs: number
  dueMs: number
  cancelTimer: (() => void) | undefined
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { name, clock, random, log = silentLog, workers = WORKERS, backoff = BACKOFF, observer } = options
  const takeRetrySlotMs = retryLimiter(options)
  const items = new Map<ObjectKey, Item>()
  const ready = new Fifo<Item>()
  const running = new Set<Item>()
  let waiting = 0
  let stuckCount = 0
  let closed = false
  let wake: (() => void) | undefined

  function itemOf(key: ObjectKey): Item {
    let item = items.get(key)
    if (!item) {
      item = {
        key,
        state: 'stuck',
        again: false,
        laterMs: Number.POSITIVE_INFINITY,
        failures: 0,
        because: undefined,
        sinceMs: 0,
        dueMs: 0,
        cancelTimer: undefined,
      }
      items.set(key, item)
      stuckCount++
    }
    return item
  }

  function leave(item: Item): void {
    if (item.state === 'waiting') {
      waiting--
      item.cancelTimer?.()
      item.cancelTimer = undefined
    } else if (item.state === 'stuck') stuckCount--
    else if (item.state === 'running') running.delete(item)
    // A worker that takes a ready key removes it from the queue.
  }

  function makeReady(item: Item): void {
    leave(item)
    item.state = 'ready'
    item.sinceMs = clock.monotonicMs()
    ready.add(item)
    wake?.()
  }

  function makeWaiting(item: Item, ms: number): void {
    leave(item)
    item.state = 'waiting'
    item.dueMs = clock.monotonicMs() + ms
    item.cancelTimer = clock.after(ms, () => add(item.key))
    waiting++
  }

  function makeStuck(item: Item): void {
    leave(item)
    item.state = 'stuck'
    stuckCount++
    items.delete(item.key) // inserted again as the newest
    items.set(item.key, item)
    if (stuckCount > STUCK_REASONS_MAX) forgetOldestStuck()
  }

  function forgetOldestStuck(): void {
    for (const item of items.values()) {
      if (item.state !== 'stuck') continue
      stuckCount--
      items.delete(item.key)
      return
    }
  }

  function add(key: ObjectKey): void {
    if (closed) return
    const item = itemOf(key)
    if (item.state === 'ready' || item.again) return
    observer?.added()
    if (item.state === 'running') item.again = true
    else makeReady(item)
  }

  function addAfter(key: ObjectKey, ms: number, because?: string): void {
    if (closed) return
    if (ms <= 0) {
      add(key)
      return
    }
    const item = itemOf(key)
    if (item.state === 'ready') return
    if (item.state === 'running') {
      item.laterMs = Math.min(item.laterMs, clock.monotonicMs() + ms)
      return
    }
    if (item.state === 'waiting' && item.dueMs <= clock.monotonicMs() + ms) return
    if (because !== undefined) item.because = because.slice(0, REASON_CHARACTERS_MAX)
    makeWaiting(item, ms)
  }

  async function work(item: Item, reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    const startedMs = clock.monotonicMs()
    observer?.started((startedMs - item.sinceMs) / 1_000)
    leave(item)
    item.state = 'running'
    item.again = false
    item.sinceMs = startedMs
    running.add(item)
    let outcome: Outcome
    try {
      outcome = await reconcile(item.key, signal)
    } catch (error) {
      const because = error instanceof Error ? error.message : String(error)
      if (!signal.aborted)
        log.warn({ err: error, queue: name, key: item.key }, 'reconcile failed; retrying with backoff')
      outcome = { is: 'retry', because }
    }
    observer?.finished((clock.monotonicMs() - startedMs) / 1_000)
    const { laterMs } = item
    item.laterMs = Number.POSITIVE_INFINITY
    settle(item, outcome)
    if (laterMs < Number.POSITIVE_INFINITY) addAfter(item.key, laterMs - clock.monotonicMs())
  }

  function settle(item: Item, outcome: Outcome): void {
    const { again } = item
    item.again = false
    switch (outcome.is) {
      case 'done':
        item.failures = 0
        item.because = undefined
        if (again) makeReady(item)
        else {
          leave(item)
          items.delete(item.key)
        }
        return
      case 'stuck':
        item.failures = 0
        item.because = outcome.because.slice(0, REASON_CHARACTERS_MAX)
        if (again) makeReady(item)
        else makeStuck(item)
        return
      case 'retry': {
        item.because = outcome.because.slice(0, REASON_CHARACTERS_MAX)
        observer?.retried()
        const isTimed = outcome.afterMs !== undefined
        const afterMs = outcome.afterMs ?? Math.max(backoffMs(backoff, item.failures, random), takeRetrySlotMs())
        item.failures = isTimed ? 0 : item.failures + 1
        // The object changed meanwhile: retry now, unless the failing reconcile itself causes the changes.
        if (again && item.failures <= EAGER_FAILURES_MAX) makeReady(item)
        else makeWaiting(item, afterMs)
        return
      }
    }
  }

  async function run(reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    const stop = () => wake?.()
    signal.addEventListener('abort', stop)
    const works = new Set<Promise<void>>()
    try {
      while (!signal.aborted) {
        const next = works.size < workers ? ready.take() : undefined
        if (next) {
          const one: Promise<void> = work(next, reconcile, signal).finally(() => {
            works.delete(one)
            wake?.()
          })
          works.add(one)
          continue
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
      }
    } finally {
      closed = true
      signal.removeEventListener('abort', stop)
      await Promise.all(works)
      for (const item of items.values()) item.cancelTimer?.()
      items.clear()
      ready.clear()
      waiting = 0
      stuckCount = 0
    }
  }

  function standingOf({ key, state, because, failures, dueMs }: Item): Standing {
    return {
      key,
      is: state,
      failures,
      ...(because === undefined ? {} : { because }),
      ...(state === 'waiting' ? { nextAtMs: clock.nowMs() + dueMs - clock.monotonicMs() } : {}),
    }
  }

  return {
    name,
    add,
    addAfter,
    run,
    has: (key) => items.has(key),
    isEmpty: () => items.size === 0,
    standing: (key) => {
      const item = items.get(key)
      return item && standingOf(item)
    },
    standings: () => [...items.values()].map(standingOf),
    stats() {
      const nowMs = clock.monotonicMs()
      const seconds = [...running].map(({ sinceMs }) => (nowMs - sinceMs) / 1_000)
      return {
        depth: ready.size,
        running: running.size,
        waiting,
        unfinishedSeconds: seconds.reduce((sum, one) => sum + one, 0),
        longestSeconds: Math.max(0, ...seconds),
      }
    },
  }
}

/** A token bucket: returns how long the next retry waits. */
function retryLimiter(options: WorkQueueOptions): () => number {
  const { clock, retriesPerSecond = RETRIES_PER_SECOND, retryBurst = RETRY_BURST } = options
  const spacingMs = 1_000 / retriesPerSecond
  let nextFreeMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = clock.monotonicMs()
    nextFreeMs = Math.max(nextFreeMs, nowMs - spacingMs * retryBurst) + spacingMs
    return Math.max(0, nextFreeMs - nowMs)
  }
}
