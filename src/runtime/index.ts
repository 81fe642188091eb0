// Public exports of the runtime.
export { type Cache, createCache } from './cache.ts'
export { type CacheReductions, type CacheSet, createCacheSet } from './cache-set.ts'
export { type Controller, createController, type Source, source } from './controller.ts'
export { createEventRecorder, type EventDetails, type EventRecorder } from './events.ts'
export { fencedClient } from './fenced-client.ts'
export { type Host, type ProcessDeps, runOnHost, startHost } from './host.ts'
export {
  createLeaderElection,
  type LeaderElection,
  type LeaseTimes,
  NotLeaderError,
} from './leader-election.ts'
export { createManager, type TermDeps } from './manager.ts'
export { type ClientMetrics, createClientMetrics } from './metrics.ts'
export {
  createOperationRegistry,
  type OperationChanges,
  type OperationFollower,
  type OperationRegistry,
} from './operations/registry.ts'
export { nameByDeletion } from './operations/subject-of-key.ts'
export { backOff, checkAfter, done, type Outcome, retryAfter, stuck } from './outcome.ts'
export { type Runnable, withRecorders } from './run-all.ts'
export { createSaver, type SavedObjects, type Saver } from './save.ts'
export { createWorkQueue, type WorkQueue } from './work-queue.ts'
export { createSilentNodes, type SilentLanes } from './workers/silent-nodes.ts'
export { createWorkerBudget, type WorkerBudget } from './workers/worker-budget.ts'
