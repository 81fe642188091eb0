// Exponential backoff with jitter, so that clients that failed together do not retry together. Pure.
import type { Random } from '../base/clock.ts'

export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/** `tries` counts from 0. Returns between half of the doubled time and all of it. */
export function backoffMs({ baseMs, maxMs }: Backoff, tries: number, random: Random): number {
  const fullMs = Math.min(baseMs * 2 ** Math.min(tries, 40), maxMs)
  return fullMs * (0.5 + random() / 2)
}
