// The settings that all kinds of volume change share. The defaults are those of external-resizer.
import type { Backoff } from '../../runtime/backoff.ts'

export interface VolumeChangeOptions {
  /** Claims reconciled at once, for all kinds of change together. Default 10. */
  readonly workers?: number
  /** Backoff between two attempts for one claim: initial and maximum delay. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
}

export interface VolumeChangeSettings {
  readonly workers: number
  readonly backoff: Backoff
}

export const volumeChangeSettings = (options: VolumeChangeOptions = {}): VolumeChangeSettings => ({
  workers: options.workers ?? 10,
  backoff: { baseMs: options.retryIntervalStartMs ?? 1_000, maxMs: options.retryIntervalMaxMs ?? 300_000 },
})
