// The settings of an attacher. The defaults are those of external-attacher.
import type { Backoff } from '../../../runtime/backoff.ts'

export interface AttacherOptions {
  /** Timeout of one driver call. Default 15 s. */
  readonly timeoutMs?: number
  /** Backoff between two attempts for one attachment: initial and maximum delay. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** Attachments reconciled at once. Default 100. */
  readonly workers?: number
  /** The fsType of volumes that name none. Default: empty. */
  readonly defaultFsType?: string
  /** The process runs attachers of several drivers: queue names include the driver's name. Default false. */
  readonly isOneOfSeveral?: boolean
}

export interface AttacherSettings {
  readonly timeoutMs: number
  readonly backoff: Backoff
  readonly workers: number
  readonly defaultFsType: string
}

export const attacherSettings = (options: AttacherOptions): AttacherSettings => ({
  timeoutMs: options.timeoutMs ?? 15_000,
  backoff: { baseMs: options.retryIntervalStartMs ?? 1_000, maxMs: options.retryIntervalMaxMs ?? 300_000 },
  workers: options.workers ?? 100,
  defaultFsType: options.defaultFsType ?? '',
})
