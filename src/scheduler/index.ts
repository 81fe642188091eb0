// The public names of the scheduler.
export { createPodEvaluator, type NodeEvaluation, type PodEvaluation } from './evaluate-pod.ts'
export type { SchedulerCaches } from './framework/scheduler-caches.ts'
export { createSchedulerMetrics } from './metrics.ts'
export { createScheduler, SCHEDULER_NAMES, type Scheduler } from './scheduler.ts'
