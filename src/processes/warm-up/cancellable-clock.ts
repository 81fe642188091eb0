// A clock whose timers can be cancelled together, so that the caches of a closed cluster, which keep entries for minutes, are released
// at once.
import type { Clock } from '../../base/clock.ts'

export interface CancellableClock {
  readonly clock: Clock
  /** Cancels the timers of `after`. Later ones are not started. */
  cancelTimers(): void
}

export function cancellableClock(base: Clock): CancellableClock {
  const cancellations = new Set<() => void>()
  let isCancelled = false
  return {
    clock: {
      ...base,
      after(ms, run) {
        if (isCancelled) return () => {}
        const cancelTimer = base.after(ms, () => {
          cancellations.delete(cancel)
          run()
        })
        const cancel = () => {
          cancellations.delete(cancel)
          cancelTimer()
        }
        cancellations.add(cancel)
        return cancel
      },
    },
    cancelTimers() {
      isCancelled = true
      for (const cancel of cancellations) cancel()
    },
  }
}
