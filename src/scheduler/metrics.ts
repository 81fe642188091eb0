// The scheduler's metrics. Metrics that kube-scheduler also exposes have the same names.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { SchedulingQueue } from './queue/queue.ts'

export interface SchedulerMetrics {
  observeAttempt(result: 'scheduled' | 'unschedulable' | 'error', profile: string, seconds: number): void
  countVolumeStageError(operation: 'predicate' | 'assume' | 'bind'): void
  /** The running schedulers, which the gauges read when metrics are scraped. */
  readonly schedulers: Set<{ readonly queue: Pick<SchedulingQueue, 'sizes'>; readonly reservations: number }>
}

const ATTEMPT_SECONDS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16]

const QUEUES = ['active', 'backoff', 'unschedulable'] as const

export function createSchedulerMetrics(registry: Registry): SchedulerMetrics {
  const registers = [registry]
  const schedulers: SchedulerMetrics['schedulers'] = new Set()
  const attempts = new Counter({
    name: 'scheduler_schedule_attempts_total',
    help: 'Attempts to schedule a pod, by result: scheduled (the pod is bound), unschedulable, error.',
    labelNames: ['result', 'profile'],
    registers,
  })
  const attemptDuration = new Histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'Time from popping a pod off the queue until a node is selected or none fits; excludes binding.',
    labelNames: ['result', 'profile'],
    buckets: ATTEMPT_SECONDS,
    registers,
  })
  const volumeStageErrors = new Counter({
    name: 'scheduler_volume_scheduling_stage_error_total',
    help: 'Failures of volume scheduling, by stage: predicate, assume, bind.',
    labelNames: ['operation'],
    registers,
  })
  new Gauge({
    name: 'scheduler_pending_pods',
    help: 'Pods without a node, by queue: active, backoff, unschedulable.',
    labelNames: ['queue'],
    registers,
    collect() {
      const pending = { active: 0, backoff: 0, unschedulable: 0 }
      for (const { queue } of schedulers) {
        const sizes = queue.sizes()
        for (const name of QUEUES) pending[name] += sizes[name]
      }
      for (const name of QUEUES) this.set({ queue: name }, pending[name])
    },
  })
  new Gauge({
    name: 'stowage_scheduler_capacity_reservations',
    help: 'Volumes that have been requested or created but are not yet included in a capacity report.',
    registers,
    collect() {
      let total = 0
      for (const { reservations } of schedulers) total += reservations
      this.set(total)
    },
  })
  return {
    observeAttempt(result, profile, seconds) {
      attempts.inc({ result, profile })
      attemptDuration.observe({ result, profile }, seconds)
    },
    countVolumeStageError: (operation) => volumeStageErrors.inc({ operation }),
    schedulers,
  }
}
