// A clock that advances only while no real work is in progress: it stops during driver calls and disk operations, and then jumps
// to the next timer. An hour of backoff takes milliseconds, and a slow driver causes no timeout in the controllers.
import type { Clock } from '../base/clock.ts'

export interface VirtualClock extends Clock {
  /** Stops virtual time until the real work has settled. */
  hold<T>(work: Promise<T>): Promise<T>
  /** Advances virtual time until the condition holds. Returns false if it does not hold within the limit. */
  runUntil(condition: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean>
  /** Advances virtual time until the promise has settled. */
  runUntilSettled<T>(promise: Promise<T>): Promise<T>
}

const START_MS = Date.UTC(2026, 0, 1)
/** After this many turns of the event loop without real work, all components are waiting for a timer. */
const QUIET_TURNS = 3
/** The time that components have to stop. */
const STOP_WITHIN_MS = 3_600_000

interface Timer {
  readonly dueMs: number
  readonly order: number
  readonly run: () => void
}

export interface VirtualClockOptions {
  /** Ends `runUntil` with the reason of the signal. */
  readonly signal: AbortSignal
}

export function createVirtualClock({ signal }: VirtualClockOptions): VirtualClock {
  const timers = new Set<Timer>()
  let nowMs = 0
  let order = 0
  let heldCount = 0
  let onReleased: (() => void)[] = []

  const after = (ms: number, run: () => void) => {
    const timer: Timer = { dueMs: nowMs + Math.max(0, ms), order: order++, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }

  const findNext = (): Timer | undefined => {
    let next: Timer | undefined
    for (const timer of timers) {
      if (!next || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order)) next = timer
    }
    return next
  }

  /** Resolves when no real work is in progress and the components wait for a timer. */
  async function settle(): Promise<void> {
    for (let quietTurns = 0; quietTurns < QUIET_TURNS; quietTurns++) {
      if (heldCount > 0) {
        await waitForRelease()
        quietTurns = 0
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  const waitForRelease = () =>
    new Promise<void>((resolve, reject) => {
      const abort = () => reject(signal.reason)
      if (signal.aborted) return abort()
      signal.addEventListener('abort', abort, { once: true })
      onReleased.push(() => {
        signal.removeEventListener('abort', abort)
        resolve()
      })
    })

  async function runUntil(condition: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
    const deadlineMs = nowMs + withinMs
    for (;;) {
      await settle()
      signal.throwIfAborted()
      if (await condition()) return true
      const timer = findNext()
      if (!timer || timer.dueMs > deadlineMs) return false
      timers.delete(timer)
      nowMs = Math.max(nowMs, timer.dueMs)
      timer.run()
    }
  }

  return {
    nowMs: () => START_MS + Math.floor(nowMs),
    monotonicMs: () => nowMs,
    after,
    nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
    sleep: (ms, sleepSignal) =>
      new Promise((resolve, reject) => {
        if (sleepSignal?.aborted) return reject(sleepSignal.reason)
        const abort = () => {
          cancel()
          reject(sleepSignal?.reason)
        }
        const cancel = after(ms, () => {
          sleepSignal?.removeEventListener('abort', abort)
          resolve()
        })
        sleepSignal?.addEventListener('abort', abort, { once: true })
      }),
    async hold(work) {
      heldCount++
      try {
        return await work
      } finally {
        heldCount--
        if (heldCount === 0) {
          const listeners = onReleased
          onReleased = []
          for (const notify of listeners) notify()
        }
      }
    },
    runUntil,
    async runUntilSettled(promise) {
      let isSettled = false
      const markSettled = () => {
        isSettled = true
      }
      promise.then(markSettled, markSettled)
      await runUntil(() => isSettled, STOP_WITHIN_MS)
      return promise
    },
  }
}
