// Retries a request to the driver or the API server with backoff until it succeeds. Errors that a retry does not fix, such as
// NotFound, Forbidden or an unimplemented call, are thrown.
import { ApiError } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { CsiError, isUnimplemented } from '../../csi/index.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'

const RETRY: Backoff = { baseMs: 1_000, maxMs: 30_000 }

/** Returns undefined if the signal fires first. */
export async function retryUntilSuccess<T>(
  request: () => Promise<T>,
  { clock, random, log }: { readonly clock: Clock; readonly random: Random; readonly log: Logger },
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      return await request()
    } catch (error) {
      if (signal.aborted) return undefined
      if (!isRetryable(error)) throw error
      log.warn({ err: error }, 'cannot publish capacity yet; retrying')
      await clock.sleep(backoffMs(RETRY, attempt, random), signal).catch(() => {})
    }
  }
  return undefined
}

const isRetryable = (error: unknown): boolean =>
  (error instanceof CsiError && !isUnimplemented(error)) ||
  (error instanceof ApiError && (error.code >= 500 || error.code === 429))
