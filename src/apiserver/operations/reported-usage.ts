// Keeps the usage of volumes that node agents in other processes report, and exposes it as one metric. The agents also expose the
// usage, under the names of the kubelet metrics. This metric has another name, so that a query over all processes does not count
// the usage twice.
import { Gauge, type Registry } from 'prom-client'
import { REPORTED_VOLUMES_MAX } from '../../api/kinds/operation/operation-report.ts'
import {
  REPORTED_USAGE_METRIC,
  USAGE_AMOUNTS,
  type VolumeUsage,
} from '../../api/kinds/operation/volume-usage-schema.ts'
import { badRequest } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'

/** Bounds the volumes of all processes. A report that would exceed it only removes the earlier usage of its process. */
const VOLUMES_MAX = 50_000
/** The usage of a process that does not report for this time is dropped. Agents report at least once per minute. */
export const USAGE_SILENCE_MS_MAX = 180_000

interface Reporter {
  readonly process: string
  readonly volumes: readonly VolumeUsage[]
  readonly cancelExpiry: () => void
}

export interface ReportedUsage {
  /** Replaces the usage of a process, which `user` reports. */
  apply(user: string, process: string, volumes: readonly VolumeUsage[]): void
  /** Exposes the usage as a metric. */
  register(registry: Registry): void
  close(): void
}

export function createReportedUsage(clock: Clock): ReportedUsage {
  const reporters = new Map<string, Reporter>()
  let volumeCount = 0

  function remove(id: string): void {
    const reporter = reporters.get(id)
    if (!reporter) return
    reporter.cancelExpiry()
    volumeCount -= reporter.volumes.length
    reporters.delete(id)
  }

  return {
    apply(user, process, volumes) {
      if (volumes.length > REPORTED_VOLUMES_MAX)
        throw badRequest(`a report has at most ${REPORTED_VOLUMES_MAX} volumes; omit the others`)
      const id = `${user} ${process}`
      remove(id)
      if (volumes.length === 0 || volumeCount + volumes.length > VOLUMES_MAX) return
      volumeCount += volumes.length
      reporters.set(id, { process, volumes, cancelExpiry: clock.after(USAGE_SILENCE_MS_MAX, () => remove(id)) })
    },
    register(registry) {
      new Gauge({
        name: REPORTED_USAGE_METRIC,
        help: 'Usage of volumes that node agents in other processes report.',
        labelNames: ['namespace', 'persistentvolumeclaim', 'process', 'amount'],
        registers: [registry],
        collect() {
          this.reset()
          for (const { process, volumes } of reporters.values())
            for (const usage of volumes)
              for (const { amount, value } of amountsOf(usage))
                this.set({ namespace: usage.namespace, persistentvolumeclaim: usage.claim, process, amount }, value)
        },
      })
    },
    close() {
      for (const id of [...reporters.keys()]) remove(id)
    },
  }
}

const amountsOf = (usage: VolumeUsage): { amount: string; value: number }[] =>
  (Object.keys(USAGE_AMOUNTS) as (keyof typeof USAGE_AMOUNTS)[]).flatMap((field) => {
    const value = usage[field]
    return value !== undefined && Number.isFinite(value) ? [{ amount: USAGE_AMOUNTS[field], value }] : []
  })
