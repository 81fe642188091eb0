// The scheduler's metrics, with the names that kube-scheduler has.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { SchedulingQueue } from './queue/queue.ts'

export interface SchedulerMetrics {
  attempted(result: 'scheduled' | 'unschedulable' | 'error', profile: string, seconds: number): void
  volumeStageFailed(operation: 'predicate' | 'assume' | 'bind'): void
  /** Read by the gauges when metrics are scraped. */
  readonly queues: Set<Pick<SchedulingQueue, 'sizes'>>
  readonly capacityReservations: Set<{ readonly size: number }>
}

const ATTEMPT_SECONDS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16]

export function createSchedulerMetrics(registry: Registry): SchedulerMetrics {
  const registers = [registry]
  const queues: SchedulerMetrics['queues'] = new Set()
  const capacityReservations: SchedulerMetrics['capacityReservations'] = new Set()
  const attempts = new Counter({
    name: 'scheduler_schedule_attempts_total',
    help: 'Attempts to schedule a pod, by result: scheduled, unschedulable, error.',
    labelNames: ['result', 'profile'],
    registers,
  })
  const seconds = new Histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'Time from taking a pod off the queue until a node is found or none fits; binding excluded.',
    labelNames: ['result', 'profile'],
    buckets: ATTEMPT_SECONDS,
    registers,
  })
  const stages = new Counter({
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
      for (const queue of queues)
        for (const [name, size] of Object.entries(queue.sizes())) this.set({ queue: name }, size)
    },
  })
  new Gauge({
    name: 'stowage_scheduler_capacity_reservations',
    help: 'Volumes that are requested or created and not yet counted by a capacity report.',
    registers,
    collect() {
      let all = 0
      for (const { size } of capacityReservations) all += size
      this.set(all)
    },
  })
  return {
    attempted(result, profile, took) {
      attempts.inc({ result, profile })
      seconds.observe({ result, profile }, took)
    },
    volumeStageFailed: (operation) => stages.inc({ operation }),
    queues,
    capacityReservations,
  }
}
