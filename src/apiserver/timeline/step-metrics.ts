// Keeps the histograms of claim steps, with the newest claim in each bucket as its exemplar. prom-client prints exemplars
// for all scrapers or for none, so this file keeps them; open-metrics.ts adds them for scrapers that accept OpenMetrics. Its
// histograms also compare and hash the labels of each observation, so this file counts, and formats the counts for a scrape.
import type { Histogram, MetricValueWithName, Registry } from 'prom-client'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import type { Exemplar, ExemplarOf } from '../http/open-metrics.ts'
import type { FollowedClaim, StepFollower } from './follow-steps.ts'

const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Registers the histograms. Returns a function that finds the exemplar of a bucket. */
export function registerStepMetrics(registry: Registry, steps: StepFollower): ExemplarOf {
  const stepSeconds = createStepHistogram(
    { registry, steps },
    'stowage_claim_step_duration_seconds',
    'Time since the previous step: scheduled, provisioned, bound, attached, published.',
  )
  const totalSeconds = createStepHistogram(
    { registry, steps },
    'stowage_claim_time_to_step_seconds',
    'Time from the creation of the claim to the step.',
  )
  steps.subscribe({
    acceptsLateSteps: true,
    onStep({ claim, step, sinceMs, atMs }) {
      stepSeconds.observe(step, (atMs - sinceMs) / 1_000, claim, atMs)
      totalSeconds.observe(step, (atMs - claim.createdMs) / 1_000, claim, atMs)
    },
  })
  return (series) => stepSeconds.exemplarOf(series) ?? totalSeconds.exemplarOf(series)
}

function createStepHistogram(
  { registry, steps }: { readonly registry: Registry; readonly steps: StepFollower },
  name: string,
  help: string,
) {
  const series = new Map<StepName, Series>()
  const createSeries = (step: StepName): Series => {
    const created = { label: step.toLowerCase(), counts: BOUNDS.map(() => 0), sum: 0, newest: [] }
    series.set(step, created)
    return created
  }
  const values = (): MetricValueWithName<'le' | 'step'>[] =>
    [...series.values()].flatMap((each) => valuesOf(name, each))
  const metric = {
    name,
    help,
    type: 'histogram',
    async get() {
      steps.flush()
      return { name, help, type: 'histogram', aggregator: 'sum', values: values() }
    },
    reset: () => series.clear(),
  }
  // The registry calls only these members of a metric.
  registry.registerMetric(metric as unknown as Histogram<'le' | 'step'>)
  return {
    observe(step: StepName, seconds: number, claim: FollowedClaim, atMs: number): void {
      const observed = series.get(step) ?? createSeries(step)
      const { counts, newest } = observed
      const bucket = bucketOf(seconds)
      counts[bucket]!++
      observed.sum += seconds
      const observation = newest[bucket]
      if (observation) {
        observation.claim = claim
        observation.seconds = seconds
        observation.atMs = atMs
      } else newest[bucket] = { claim, seconds, atMs }
    },
    exemplarOf({ name: seriesName, labels }: { name: string; labels: Readonly<Record<string, string>> }) {
      if (seriesName !== `${name}_bucket`) return undefined
      const labelled = [...series.values()].find(({ label }) => label === labels.step)
      return exemplarOf(labelled?.newest[BOUNDS.indexOf(labels.le ?? '')])
    },
  }
}

/** The observations of a step. */
interface Series {
  readonly label: string
  /** The number of observations in each bucket. */
  readonly counts: number[]
  sum: number
  /** The newest observation in each bucket. */
  readonly newest: Observation[]
}

interface Observation {
  claim: FollowedClaim
  seconds: number
  atMs: number
}

/** The values of the label `le`. */
const BOUNDS = [...BUCKETS_SECONDS.map(String), '+Inf']

/** Returns the values of a series. Those of buckets include the observations of smaller ones. */
function valuesOf(name: string, { label: step, counts, sum }: Series): MetricValueWithName<'le' | 'step'>[] {
  let count = 0
  const buckets = counts.map((added, bucket) => {
    count += added
    return { metricName: `${name}_bucket`, labels: { le: BOUNDS[bucket]!, step }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { step }, value: sum },
    { metricName: `${name}_count`, labels: { step }, value: count },
  ]
}

/** Returns the index of the first bucket with this bound or a greater one; the last bucket has no bound. */
function bucketOf(seconds: number): number {
  let bucket = 0
  while (bucket < BUCKETS_SECONDS.length && seconds > BUCKETS_SECONDS[bucket]!) bucket++
  return bucket
}

const exemplarOf = (observation: Observation | undefined): Exemplar | undefined =>
  observation && {
    labels: { namespace: observation.claim.namespace, persistentvolumeclaim: observation.claim.name },
    value: observation.seconds,
    atMs: observation.atMs,
  }
