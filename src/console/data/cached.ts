// Caches the result of a costly function. Callers at the same time share one call, and a result is kept for a multiple of
// the time that it took, so that a page that asks often costs at most a tenth of a core.
import type { Clock } from '../../base/clock.ts'

export interface CacheOptions {
  readonly clock: Clock
  /** How long a result is kept at least. */
  readonly keepMs: number
  /** How long a result is kept at most, however long it took. */
  readonly keepMsMax: number
}

const COST_FACTOR = 10
/** Results of other keys are forgotten, oldest first. */
const KEYS_MAX = 20

/** A rejection is not kept. */
export function createCached<T>(
  { clock, keepMs, keepMsMax }: CacheOptions,
  compute: (key: string) => Promise<T>,
): (key?: string) => Promise<T> {
  const results = new Map<string, { readonly result: Promise<T>; expiresAtMs: number }>()
  return (key = '') => {
    const cached = results.get(key)
    if (cached && clock.monotonicMs() < cached.expiresAtMs) return cached.result
    const startedMs = clock.monotonicMs()
    const entry = { result: compute(key), expiresAtMs: Number.POSITIVE_INFINITY }
    results.delete(key)
    results.set(key, entry)
    const [oldestKey] = results.keys()
    if (results.size > KEYS_MAX && oldestKey !== undefined) results.delete(oldestKey)
    entry.result.then(
      () => {
        const nowMs = clock.monotonicMs()
        entry.expiresAtMs = nowMs + Math.min(Math.max(keepMs, (nowMs - startedMs) * COST_FACTOR), keepMsMax)
      },
      () => {
        if (results.get(key) === entry) results.delete(key)
      },
    )
    return entry.result
  }
}
