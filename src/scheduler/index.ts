// The public names of the scheduler.
export { createSchedulerMetrics, type SchedulerMetrics } from './metrics.ts'
export { createScheduler, SCHEDULER_NAMES, type Scheduler, type SchedulerOptions } from './scheduler.ts'
