// What the scheduler counts, under the names operators already chart.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { SchedulingQueue } from './queue/queue.ts'

export interface SchedulerMetrics {
  attempted(result: 'scheduled' | 'unschedulable' | 'error', profile: string, seconds: number): void
  volumeStageFailed(operation: 'predicate' | 'assume' | 'bind'): void
  /** The gauges ask these when they are read. */
  readonly queues: Set<Pick<SchedulingQueue, 'sizes'>>
  readonly capacityHeldBack: Set<{ readonly size: number }>
}

const ATTEMPT_SECONDS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2, 4, 8, 16]

export function createSchedulerMetrics(registry: Registry): SchedulerMetrics {
  const registers = [registry]
  const queues: SchedulerMetrics['queues'] = new Set()
  const capacityHeldBack: SchedulerMetrics['capacityHeldBack'] = new Set()
  const attempts = new Counter({
    name: 'scheduler_schedule_attempts_total',
    help: 'Attempts to place a pod, by result: scheduled, unschedulable, error.',
    labelNames: ['result', 'profile'],
    registers,
  })
  const seconds = new Histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'From taking a pod in hand to its node, or to the verdict that there is none; binding excluded.',
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
    help: 'Pods that wait for a node: active, backoff, unschedulable.',
    labelNames: ['queue'],
    registers,
    collect() {
      for (const queue of queues)
        for (const [name, size] of Object.entries(queue.sizes())) this.set({ queue: name }, size)
    },
  })
  new Gauge({
    name: 'stowage_scheduler_capacity_reservations',
    help: 'Volumes that are promised or made and not yet counted by a capacity report.',
    registers,
    collect() {
      let all = 0
      for (const { size } of capacityHeldBack) all += size
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
    capacityHeldBack,
  }
}
