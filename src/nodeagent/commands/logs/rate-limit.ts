// Limits the rate at which several callers together process bytes: each call waits until the bytes of earlier calls are paid off.
import type { Clock } from '../../../base/clock.ts'

/** Bytes that pass without a delay after a pause. */
const BURST_SECONDS = 0.25

export function createRateLimit({ bytesPerSecond, clock }: { readonly bytesPerSecond: number; readonly clock: Clock }) {
  let paidUntilMs = Number.NEGATIVE_INFINITY
  return async (bytes: number): Promise<void> => {
    const nowMs = clock.monotonicMs()
    paidUntilMs = Math.max(paidUntilMs, nowMs - BURST_SECONDS * 1_000) + (bytes / bytesPerSecond) * 1_000
    if (paidUntilMs > nowMs) await clock.sleep(paidUntilMs - nowMs)
  }
}
