// The door of the client library.
export { type Cache, type CacheOptions, createCache } from './cache.ts'
export { type CacheSet, createCacheSet } from './cache-set.ts'
export type {
  Client,
  CommitWrite,
  DeleteRequest,
  ListRequest,
  ObjectList,
  ObjectRef,
  Patch,
  WatchEvent,
  WatchRequest,
  WriteOptions,
} from './client.ts'
export { failedWrite } from './client.ts'
export type { Connection, Credentials } from './connection.ts'
export { type Controller, type ControllerOptions, createController, type Source, source } from './controller.ts'
export { createEventRecorder, type EventRecorder, type Happening } from './events.ts'
export { type HttpClient, type HttpClientOptions, httpClient } from './http-client.ts'
export { inClusterConnection, isInCluster } from './in-cluster.ts'
export { inProcessClient } from './in-process.ts'
export { kubeconfigConnection } from './kubeconfig.ts'
export { createLeaderElection, type LeaderElection, NotLeaderError } from './leader-election.ts'
export { type ClientMetrics, createClientMetrics } from './metrics.ts'
export { keyOfObject, keyOfRef, type ObjectKey, refOfKey } from './object-key.ts'
export { backOff, done, type Outcome, retryAfter, stuck } from './outcome.ts'
export { type RateLimit, rateLimited } from './rate-limit.ts'
export { createWorkQueue, type WorkQueue } from './work-queue.ts'
