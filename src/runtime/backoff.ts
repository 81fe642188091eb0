// How long to wait before trying again: doubling from a base to a maximum, with chance mixed in so that many who
// failed together do not come back together. Pure: told how often it failed and given the chance.
import type { Random } from '../base/clock.ts'

export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/** Tries are counted from 0. Between half the doubled time and all of it. */
export function backoffMs({ baseMs, maxMs }: Backoff, tries: number, random: Random): number {
  const fullMs = Math.min(baseMs * 2 ** Math.min(tries, 40), maxMs)
  return fullMs * (0.5 + random() / 2)
}
