// Caches the result of a costly function. Concurrent callers share one call. A result is cached for `cachedMsMin`, or for a
// multiple of its computation time if that is longer, so that a polling page does not recompute it continuously, but for at most
// `cachedMsMax`.
import type { Clock } from '../../base/clock.ts'

export interface CacheOptions {
  readonly clock: Clock
  /** Minimum time for which a result is cached. */
  readonly cachedMsMin: number
  /** Maximum time for which a result is cached, however long its computation took. */
  readonly cachedMsMax: number
}

const COST_FACTOR = 10
/** Maximum number of cached keys. The oldest result is evicted first. */
const KEYS_MAX = 20

/** Rejected results are not cached. */
export function createCached<T>(
  { clock, cachedMsMin, cachedMsMax }: CacheOptions,
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
        entry.expiresAtMs = nowMs + Math.min(Math.max(cachedMsMin, (nowMs - startedMs) * COST_FACTOR), cachedMsMax)
      },
      () => {
        if (results.get(key) === entry) results.delete(key)
      },
    )
    return entry.result
  }
}
