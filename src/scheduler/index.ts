// The public names of the scheduler.
export { createSchedulerMetrics } from './metrics.ts'
export { createScheduler, SCHEDULER_NAMES, type Scheduler } from './scheduler.ts'
