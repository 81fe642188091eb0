// Reports the usage of mounted volumes to a Stowage API server, for `stowage df`. Other API servers do not
// serve these reports and receive none.
import { operationReportKind, REPORTED_VOLUMES_MAX } from '../../api/kinds/operation/operation-report.ts'
import type { VolumeUsage } from '../../api/kinds/operation/volume-usage-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { AgentMetrics, VolumeLabels, VolumeStats } from '../metrics.ts'

export interface UsageReportOptions {
  readonly client: Pick<Client, 'create' | 'serves'>
  readonly process: string
  readonly metrics: Pick<AgentMetrics, 'volumes'>
  readonly clock: Clock
  readonly log: Logger
}

/** Changed usage is reported after at most this time. */
const CHECK_INTERVAL_MS = 5_000
/** Unchanged usage is reported again after this time, because the server drops the usage of a silent process. */
const REPEAT_INTERVAL_MS = 60_000
/** Delay after a report failed, or after the server was found not to serve reports. */
const RETRY_DELAY_MS = 60_000

/** Reports until the signal is aborted. The last report removes this process's usage. */
export async function reportUsage(options: UsageReportOptions, signal: AbortSignal): Promise<void> {
  const { metrics, clock, log } = options
  let reportedText = '[]'
  let reportedMs = 0
  while (!signal.aborted) {
    let delayMs = CHECK_INTERVAL_MS
    const volumes = usageOf(metrics.volumes)
    const text = JSON.stringify(volumes)
    const isDue = volumes.length > 0 && clock.monotonicMs() - reportedMs >= REPEAT_INTERVAL_MS
    if (text !== reportedText || isDue) {
      try {
        if (await sendUsage(volumes, options)) {
          reportedText = text
          reportedMs = clock.monotonicMs()
        } else delayMs = RETRY_DELAY_MS
      } catch (error) {
        log.debug({ reason: (error as Error).message }, 'cannot report the usage of volumes; retrying')
        delayMs = RETRY_DELAY_MS
      }
    }
    await clock.sleep(delayMs, signal).catch(() => {}) // rejects when the signal is aborted
  }
  if (reportedText !== '[]') await sendUsage([], options).catch(() => {}) // on failure, the server drops the usage later
}

/** Returns whether the server accepts reports. */
async function sendUsage(volumes: VolumeUsage[], { client, process }: UsageReportOptions): Promise<boolean> {
  if (!(await client.serves(operationReportKind))) return false
  await client.create(operationReportKind, { metadata: {}, spec: { process, volumes, replacesVolumes: true } })
  return true
}

const usageOf = (volumes: AgentMetrics['volumes']): VolumeUsage[] =>
  [...volumes.values()].slice(0, REPORTED_VOLUMES_MAX).map(({ labels, stats }) => toUsage(labels, stats))

function toUsage({ namespace, persistentvolumeclaim: claim }: VolumeLabels, stats: VolumeStats): VolumeUsage {
  const { capacityBytes, availableBytes, usedBytes, inodes, inodesUsed, growthBytesPerDay } = stats
  const amounts = {
    ...{ capacityBytes, availableBytes, usedBytes, inodes, inodesUsed, growthBytesPerDay },
    iops: sum(stats.read?.iopsUsed, stats.write?.iopsUsed),
    throughputBytes: sum(stats.read?.throughputUsed, stats.write?.throughputUsed),
  }
  const knownAmounts = Object.entries(amounts).filter(([, value]) => value !== undefined && Number.isFinite(value))
  return { namespace, claim, ...Object.fromEntries(knownAmounts) }
}

const sum = (read: number | undefined, write: number | undefined): number | undefined =>
  read === undefined && write === undefined ? undefined : (read ?? 0) + (write ?? 0)
