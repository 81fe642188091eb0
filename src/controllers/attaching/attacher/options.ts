// What an attacher can be told, and what it does when it is not. The defaults are those operators know.
import type { Backoff } from '../../../runtime/backoff.ts'

export interface AttacherOptions {
  /** How long the driver may take for one call. Default 15 s. */
  readonly timeoutMs?: number
  /** Between two tries for one attachment: from, doubling, to. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** Attachments worked on at once. Default 100. */
  readonly workers?: number
  /** What to say of volumes that name no file system. Default: nothing. */
  readonly defaultFsType?: string
  /** There are attachers of other drivers in this process: its queues carry the driver's name. Default false. */
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
