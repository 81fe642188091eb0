// The settings of an attacher.
import type { Backoff } from '../../../runtime/backoff.ts'

export interface AttacherOptions {
  /** Timeout of one driver call. Default 15 s. */
  readonly timeoutMs?: number
  /** Initial delay between two attempts for an attachment. Default 1 s. */
  readonly retryIntervalStartMs?: number
  /** Maximum delay between two attempts for an attachment. Default 5 min. */
  readonly retryIntervalMaxMs?: number
  /** Attachments reconciled at once, and volumes released at once. Default 100. */
  readonly workers?: number
  /** fsType for volumes without one. Default: empty. */
  readonly defaultFsType?: string
  /** The node whose attachments this attacher handles. Default: all nodes. */
  readonly nodeName?: string
  /** Interval at which attachments are compared with the volumes that the driver lists. Default: never. */
  readonly syncIntervalMs?: number
  /** Maximum number of volumes in one response of the driver. Default: the driver decides. */
  readonly listEntriesMax?: number
  /** Whether the process runs attachers of several drivers. If true, queue names include the driver's name. Default false. */
  readonly prefixesQueueNames?: boolean
}

export interface AttacherSettings {
  readonly timeoutMs: number
  readonly backoff: Backoff
  readonly workers: number
  readonly defaultFsType: string
  /** Undefined for all nodes. */
  readonly nodeName: string | undefined
}

export const attacherSettings = (options: AttacherOptions): AttacherSettings => ({
  timeoutMs: options.timeoutMs ?? 15_000,
  backoff: { baseMs: options.retryIntervalStartMs ?? 1_000, maxMs: options.retryIntervalMaxMs ?? 300_000 },
  workers: options.workers ?? 100,
  defaultFsType: options.defaultFsType ?? '',
  nodeName: options.nodeName,
})
