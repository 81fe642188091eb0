// Reads the usage of mounted volumes from this process's metrics, for its own nodes and for nodes that report to the server.
import type { Registry } from 'prom-client'
import type { Clock } from '../../base/clock.ts'
import { parseMetrics, USAGE_METRICS, type UsageByClaim } from '../../volumes/volume-usage.ts'

/** Minimum interval between readings, which cover all claims. Nodes measure usage once per minute. */
const READ_INTERVAL_MS_MIN = 5_000

export function createUsageReader(registry: Registry, clock: Pick<Clock, 'monotonicMs'>): () => Promise<UsageByClaim> {
  let reading: { readonly startedMs: number; readonly usage: Promise<UsageByClaim> } | undefined
  const read = async (): Promise<UsageByClaim> => {
    const metrics = USAGE_METRICS.filter((name) => registry.getSingleMetric(name) !== undefined)
    return parseMetrics((await Promise.all(metrics.map((name) => registry.getSingleMetricAsString(name)))).join('\n'))
  }
  return () => {
    const nowMs = clock.monotonicMs()
    if (!reading || nowMs - reading.startedMs >= READ_INTERVAL_MS_MIN) reading = { startedMs: nowMs, usage: read() }
    return reading.usage
  }
}
