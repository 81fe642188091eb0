// Public exports of the client.
export { type AdaptiveLimit, createAdaptiveLimit } from './adaptive-limit.ts'
export type {
  Client,
  CommitWrite,
  ObjectRef,
  Patch,
  WatchEvent,
  WatchRequest,
  WriteOptions,
} from './client.ts'
export type { Connection } from './connection/connection.ts'
export { inClusterConnection, isInCluster } from './connection/in-cluster.ts'
export { kubeconfigConnection } from './connection/kubeconfig.ts'
export { find } from './find.ts'
export { groupCommits } from './group-commits.ts'
export { type HttpClient, httpClient } from './http/http-client.ts'
export { keyOfObject, keyOfRef, type ObjectKey, refOfKey } from './object-key.ts'
export { limitRate, type RateLimit } from './rate-limit.ts'
