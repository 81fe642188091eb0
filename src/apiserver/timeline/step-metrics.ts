// Keeps the histograms of claim steps, with the newest claim in each bucket as its exemplar. prom-client prints exemplars
// for all scrapers or for none, so this file keeps them; open-metrics.ts adds them for scrapers that accept OpenMetrics.
import { Histogram, type Registry } from 'prom-client'
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
  const histogram = new Histogram({
    ...{ name, help, labelNames: ['step'], buckets: BUCKETS_SECONDS, registers: [registry] },
    collect: () => steps.flush(),
  })
  const observers = new Map<StepName, Observer>()
  /** By the label of the step and the index of the bucket. Formatted when they are read. */
  const observations = new Map<string, Observation[]>()
  const createObserver = (step: StepName): Observer => {
    const label = step.toLowerCase()
    const observer: Observer = { series: histogram.labels({ step: label }), observations: [] }
    observers.set(step, observer)
    observations.set(label, observer.observations)
    return observer
  }
  return {
    observe(step: StepName, seconds: number, claim: FollowedClaim, atMs: number): void {
      const { series, observations: newest } = observers.get(step) ?? createObserver(step)
      series.observe(seconds)
      const bucket = bucketOf(seconds)
      const observation = newest[bucket]
      if (observation) {
        observation.claim = claim
        observation.seconds = seconds
        observation.atMs = atMs
      } else newest[bucket] = { claim, seconds, atMs }
    },
    exemplarOf({ name: seriesName, labels }: { name: string; labels: Readonly<Record<string, string>> }) {
      if (seriesName !== `${name}_bucket`) return undefined
      const bucket = labels.le === '+Inf' ? BUCKETS_SECONDS.length : BUCKETS_SECONDS.indexOf(Number(labels.le))
      return exemplarOf(observations.get(labels.step ?? '')?.[bucket])
    },
  }
}

interface Observer {
  readonly series: { observe(seconds: number): void }
  readonly observations: Observation[]
}

/** The newest observation in a bucket. */
interface Observation {
  claim: FollowedClaim
  seconds: number
  atMs: number
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
