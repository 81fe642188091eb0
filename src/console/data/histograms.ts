// Computes quantiles of the histogram observations between two scrapes. parse-metrics.ts parses a scrape.
import type { MetricSamples } from './parse-metrics.ts'

export interface HistogramCounts {
  readonly labels: Readonly<Record<string, string>>
  readonly count: number
  /** Cumulative counts by upper bound, in ascending order; the last bound is Infinity. */
  readonly buckets: readonly (readonly [number, number])[]
}

/** Returns the histograms of a metric by the key of their labels. */
export function groupHistograms(samples: MetricSamples, name: string): ReadonlyMap<string, HistogramCounts> {
  const histograms = new Map<string, { labels: Record<string, string>; buckets: [number, number][] }>()
  for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) {
    const { le = '+Inf', ...others } = labels
    const key = JSON.stringify(others)
    const histogram = histograms.get(key) ?? { labels: others, buckets: [] }
    histograms.set(key, histogram)
    histogram.buckets.push([le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), value])
  }
  const complete = ({ labels, buckets }: { labels: Record<string, string>; buckets: [number, number][] }) => {
    buckets.sort(([a], [b]) => a - b)
    return { labels, buckets, count: buckets.at(-1)?.[1] ?? 0 }
  }
  return new Map([...histograms].map(([key, histogram]) => [key, complete(histogram)]))
}

/** Returns the observations since `earlier`. Lower counts mean that the server has restarted, so all observations are new. */
export function subtractHistogram(later: HistogramCounts, earlier: HistogramCounts | undefined): HistogramCounts {
  if (!earlier || earlier.count > later.count) return later
  const counts = new Map(earlier.buckets)
  const buckets = later.buckets.map(([bound, count]) => [bound, count - (counts.get(bound) ?? 0)] as const)
  return { labels: later.labels, count: later.count - earlier.count, buckets }
}

/**
 * Returns the quantile in the unit of the bounds, interpolated within its bucket as Prometheus does, or null without
 * observations. A quantile above the last finite bound is that bound.
 */
export function computeQuantile({ buckets, count }: HistogramCounts, quantile: number): number | null {
  if (count === 0) return null
  const rank = quantile * count
  let lowerBound = 0
  let lowerCount = 0
  for (const [bound, cumulativeCount] of buckets) {
    if (cumulativeCount >= rank) {
      if (bound === Number.POSITIVE_INFINITY) return lowerBound
      return lowerBound + (bound - lowerBound) * ((rank - lowerCount) / (cumulativeCount - lowerCount || 1))
    }
    lowerBound = bound
    lowerCount = cumulativeCount
  }
  return lowerBound
}
