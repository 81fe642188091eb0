// What the frame of changes can be told, and what it does when it is not. The defaults are those of the external resizer.
import type { Backoff } from '../../runtime/backoff.ts'

export interface ChangingOptions {
  /** Claims worked on at once, whatever their change. Default 10. */
  readonly workers?: number
  /** Between two tries for one claim: from, doubling, to. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
}

export interface ChangingSettings {
  readonly workers: number
  readonly backoff: Backoff
}

export const changingSettings = (options: ChangingOptions = {}): ChangingSettings => ({
  workers: options.workers ?? 10,
  backoff: { baseMs: options.retryIntervalStartMs ?? 1_000, maxMs: options.retryIntervalMaxMs ?? 300_000 },
})
