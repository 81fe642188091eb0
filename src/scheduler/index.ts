// Public exports of the scheduler.
export type { PostFilterResult, ReservedVolume } from './framework/plugin.ts'
export type { SchedulerCaches } from './framework/scheduler-caches.ts'
export { createSchedulerMetrics } from './metrics.ts'
export { createPodEvaluator, type NodeEvaluation, type PodEvaluation } from './offline/evaluate-pod.ts'
export { createPodPlacer, type PodPlacer } from './offline/place-pod.ts'
export { createScheduler, SCHEDULER_NAMES, type Scheduler } from './scheduler.ts'
