// Limits the rate at which several callers together process bytes: each call waits until the rate allows its bytes after those
// of earlier calls.
import type { Clock } from '../../../base/clock.ts'

/** After a pause, the bytes of this time pass without a delay. */
const BURST_SECONDS = 0.25

export function createRateLimit({ bytesPerSecond, clock }: { readonly bytesPerSecond: number; readonly clock: Clock }) {
  let busyUntilMs = Number.NEGATIVE_INFINITY
  return async (bytes: number): Promise<void> => {
    const nowMs = clock.monotonicMs()
    busyUntilMs = Math.max(busyUntilMs, nowMs - BURST_SECONDS * 1_000) + (bytes / bytesPerSecond) * 1_000
    if (busyUntilMs > nowMs) await clock.sleep(busyUntilMs - nowMs)
  }
}
