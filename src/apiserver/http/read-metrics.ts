// Returns the metrics of a registry in the text format: all, or those that the query names, such as
// `/metrics?name[]=stowage_claim_step_duration_seconds`. Requests for a few metrics are cheap even on a server with many volumes,
// each of which has several series.
import type { Registry } from 'prom-client'

export async function readMetrics(registry: Registry, query: URLSearchParams): Promise<string> {
  const names = new Set(query.getAll('name[]'))
  if (names.size === 0) return registry.metrics()
  const known = [...names].filter((name) => registry.getSingleMetric(name))
  const texts = await Promise.all(known.map((name) => registry.getSingleMetricAsString(name)))
  return texts.map((text) => `${text}\n`).join('')
}
