// The histograms of the steps of claims, with the newest claim of each bucket as exemplar. prom-client prints exemplars
// for all scrapers or for none, so this file keeps them; open-metrics.ts adds them for scrapers that accept
// OpenMetrics.
import { Histogram, type Registry } from 'prom-client'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'
import type { Exemplar, ExemplarOf } from '../http/open-metrics.ts'
import type { FollowedClaim, StepFollower } from './follow-steps.ts'

const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Registers the histograms. Returns a function that finds the exemplar of a bucket. */
export function registerStepMetrics(registry: Registry, steps: StepFollower): ExemplarOf {
  const stepSeconds = createStepHistogram(
    registry,
    'stowage_claim_step_duration_seconds',
    'Time since the previous step: scheduled, provisioned, bound, attached, published.',
  )
  const totalSeconds = createStepHistogram(
    registry,
    'stowage_claim_time_to_step_seconds',
    'Time from the creation of the claim to the step.',
  )
  steps.subscribe({
    onStep({ claim, step, sinceMs, atMs }) {
      stepSeconds.observe(step, (atMs - sinceMs) / 1_000, claim, atMs)
      totalSeconds.observe(step, (atMs - claim.createdMs) / 1_000, claim, atMs)
    },
  })
  return (series) => stepSeconds.exemplarOf(series) ?? totalSeconds.exemplarOf(series)
}

function createStepHistogram(registry: Registry, name: string, help: string) {
  const histogram = new Histogram({ name, help, labelNames: ['step'], buckets: BUCKETS_SECONDS, registers: [registry] })
  const observers = new Map<StepName, (seconds: number) => void>()
  const exemplars = new Map<string, Exemplar>()
  const observerOf = (step: StepName) => {
    const timer = histogram.labels({ step: step.toLowerCase() })
    const observe = (seconds: number) => timer.observe(seconds)
    observers.set(step, observe)
    return observe
  }
  return {
    observe(step: StepName, seconds: number, { namespace, name: claim }: FollowedClaim, atMs: number): void {
      const observe = observers.get(step) ?? observerOf(step)
      observe(seconds)
      const bound = BUCKETS_SECONDS.find((bucket) => seconds <= bucket)
      exemplars.set(`${step.toLowerCase()} ${bound ?? '+Inf'}`, {
        labels: { namespace, persistentvolumeclaim: claim },
        value: seconds,
        atMs,
      })
    },
    exemplarOf({ name: seriesName, labels }: { name: string; labels: Readonly<Record<string, string>> }) {
      return seriesName === `${name}_bucket` ? exemplars.get(`${labels.step} ${labels.le}`) : undefined
    },
  }
}
