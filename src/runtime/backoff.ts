// Exponential backoff with jitter, so that clients that failed at the same time retry at different times. Pure.
import type { Random } from '../base/clock.ts'

export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/** Returns a random delay between 50 % and 100 % of the smaller of `maxMs` and `baseMs` times 2 to the power of `failures`. */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number, random: Random): number {
  const fullMs = Math.min(baseMs * 2 ** Math.min(failures, 40), maxMs)
  return fullMs * (0.5 + random() / 2)
}
