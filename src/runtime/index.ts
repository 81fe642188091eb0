// The public names of the runtime: what every process that hosts controllers is built from.
export { type Cache, type CacheOptions, createCache } from './cache.ts'
export { type CacheSet, createCacheSet } from './cache-set.ts'
export { type Controller, type ControllerOptions, createController, type Source, source } from './controller.ts'
export { createEventRecorder, type EventRecorder, type Happening } from './events.ts'
export { createLeaderElection, type LeaderElection, NotLeaderError } from './leader-election.ts'
export { type ClientMetrics, createClientMetrics } from './metrics.ts'
export { backOff, done, type Outcome, retryAfter, stuck } from './outcome.ts'
export { createWorkQueue, type WorkQueue } from './work-queue.ts'
