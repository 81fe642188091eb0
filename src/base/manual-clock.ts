// A clock for tests that advances only on request. advance() fires timers in order of their due time.
import type { Clock } from './clock.ts'

interface Timer {
  dueMs: number
  order: number
  run: () => void
}

export interface ManualClock extends Clock {
  /** Advances the time and fires due timers in order, with a turn of the event loop after each. */
  advance(ms: number): Promise<void>
}

export function manualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  let nowMs = startMs
  let order = 0
  const timers = new Set<Timer>()

  const after = (ms: number, run: () => void) => {
    const timer = { dueMs: nowMs + ms, order: order++, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }

  const findNextDue = (untilMs: number): Timer | undefined => {
    let nextTimer: Timer | undefined
    for (const timer of timers) {
      if (timer.dueMs > untilMs) continue
      if (
        !nextTimer ||
        timer.dueMs < nextTimer.dueMs ||
        (timer.dueMs === nextTimer.dueMs && timer.order < nextTimer.order)
      )
        nextTimer = timer
    }
    return nextTimer
  }

  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs - startMs,
    after,
    nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const abort = () => {
          cancel()
          reject(signal?.reason)
        }
        const cancel = after(ms, () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        })
        signal?.addEventListener('abort', abort, { once: true })
      }),
    async advance(ms) {
      const untilMs = nowMs + ms
      for (let timer = findNextDue(untilMs); timer; timer = findNextDue(untilMs)) {
        timers.delete(timer)
        nowMs = Math.max(nowMs, timer.dueMs)
        timer.run()
        await new Promise((resolve) => setImmediate(resolve))
      }
      nowMs = untilMs
    },
  }
}
