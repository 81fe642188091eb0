// The query parameter `timeout`, with which a client limits the time of a request. A watch ignores it, as in Kubernetes.
import { badRequest, timedOut } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'

/** A longer timeout is shortened to this, as in Kubernetes. */
const REQUEST_MS_MAX = 60_000

/** A duration in the syntax of Go, such as `32s` or `1m30.5s`. */
const DURATION = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/
const DURATION_PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g
const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Returns the time that the client allows, or undefined if it sets no limit. Throws 400 if the value is not a duration. */
export function parseTimeoutMs(query: URLSearchParams): number | undefined {
  const timeout = query.get('timeout')
  if (!timeout) return undefined
  if (!DURATION.test(timeout)) {
    throw badRequest(
      `invalid timeout specified in the request URL: "${timeout.slice(0, 50)}" is not a duration such as "30s" or "1m30s"`,
    )
  }
  let ms = 0
  for (const [, count, unit] of timeout.matchAll(DURATION_PART)) ms += Number(count) * UNITS_MS[unit!]!
  return timeout.startsWith('-') || ms === 0 ? undefined : Math.min(ms, REQUEST_MS_MAX)
}

/**
 * Rejects with 504 if the result is not available in time. The request then continues, and a write may still take effect;
 * `discard` receives the late result.
 */
export function withTimeout<T>(
  result: Promise<T>,
  timeoutMs: number,
  clock: Clock,
  discard: (lateResult: T) => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const cancelTimer = clock.after(timeoutMs, () => {
      isLate = true
      reject(timedOut('Timeout: request did not complete within the allotted timeout'))
    })
    result.finally(cancelTimer).then((value) => (isLate ? discard(value) : resolve(value)), reject)
  })
}
