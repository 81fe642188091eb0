// The health check of etcd for /readyz, which many clients poll. Concurrent callers share a check, the result is cached for
// a second, and a check that takes too long fails.
import type { Clock } from '../../base/clock.ts'

const CHECK_MS_MAX = 2_000 // as in kube-apiserver's etcd health check
const RESULT_AGE_MS_MAX = 1_000

export interface HealthCheckOptions {
  readonly clock: Clock
  /** Resolves with the problem, or undefined if etcd is healthy. */
  check(): Promise<string | undefined>
  /** The problem to report if the check rejects or takes too long. */
  readonly unresponsiveMessage: string
}

export function createHealthCheck({
  clock,
  check,
  unresponsiveMessage,
}: HealthCheckOptions): () => Promise<string | undefined> {
  let lastCheck: { readonly result: Promise<string | undefined>; endedMs: number } | undefined
  return () => {
    if (lastCheck && clock.monotonicMs() - lastCheck.endedMs < RESULT_AGE_MS_MAX) return lastCheck.result
    const newCheck = { result: checkWithTimeout(), endedMs: Number.POSITIVE_INFINITY } // shared while it runs
    lastCheck = newCheck
    return newCheck.result.finally(() => {
      newCheck.endedMs = clock.monotonicMs()
    })
  }

  function checkWithTimeout(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const cancel = clock.after(CHECK_MS_MAX, () => resolve(unresponsiveMessage))
      check()
        .catch(() => unresponsiveMessage)
        .then((problem) => {
          cancel()
          resolve(problem)
        })
    })
  }
}
