// The settings that all kinds of volume change share. The defaults are those of external-resizer.
import type { Backoff } from '../../runtime/backoff.ts'

export interface VolumeChangeOptions {
  /** Number of concurrent reconciles, for all kinds of change together. Default 10. */
  readonly workers?: number
  /** Initial delay between two attempts for a claim. Default 1 s. */
  readonly retryIntervalStartMs?: number
  /** Maximum delay between two attempts for a claim. Default 5 min. */
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
