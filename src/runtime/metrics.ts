// The metrics of requests, caches, work queues, leadership and missing permissions. Metrics that client-go or controller-runtime
// also exposes have the same names here.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { KubeObject } from '../api/kind.ts'
import type { RequestObserver } from '../client/http/http-client.ts'
import type { Cache } from './cache.ts'
import type { OperationRegistry } from './operations/registry.ts'
import type { WorkQueue, WorkQueueObserver } from './work-queue.ts'

/** The members of a cache that the gauges read. */
type MeasuredCache = Pick<Cache<KubeObject>, 'kind' | 'lastEventAgeMs' | 'stats'>

export interface ClientMetrics {
  /** The observer for httpClient. */
  readonly requests: RequestObserver
  /** Creates an observer for createWorkQueue and createController. */
  queueObserver(name: string): WorkQueueObserver
  /** The queues and caches that the gauges read when they are scraped. */
  readonly queues: Set<Pick<WorkQueue, 'name' | 'stats'>>
  readonly caches: Set<MeasuredCache>
  /** This process's operations. Absent if they are not listed. */
  readonly operations?: OperationRegistry
  setLeadership(name: string, isLeader: boolean): void
  /** Counts a failure of the leader's work. */
  countLeaderWorkFailure(name: string): void
  /** Sets whether this process lacks a permission. */
  setMissingRight(verb: string, resource: string, isMissing: boolean): void
}

const REQUEST_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const QUEUE_BUCKETS_SECONDS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000]

export function createClientMetrics(registry: Registry, operations?: OperationRegistry): ClientMetrics {
  const registers = [registry]
  const queues = new Set<Pick<WorkQueue, 'name' | 'stats'>>()
  const caches = new Set<MeasuredCache>()

  const requestsTotal = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by method and code. Code 0 means no response.',
    labelNames: ['method', 'code', 'resource'],
    registers,
  })
  const requestSeconds = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Duration of requests to the API server, without watches.',
    labelNames: ['verb', 'resource'],
    buckets: REQUEST_BUCKETS_SECONDS,
    registers,
  })
  const nameLabelOptions = { labelNames: ['name'] as const, registers }
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys added.', ...nameLabelOptions })
  const retries = new Counter({ name: 'workqueue_retries_total', help: 'Keys that were retried.', ...nameLabelOptions })
  const queueDuration = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Time that keys waited for a worker.',
    buckets: QUEUE_BUCKETS_SECONDS,
    ...nameLabelOptions,
  })
  const workDuration = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Time that keys were processed.',
    buckets: QUEUE_BUCKETS_SECONDS,
    ...nameLabelOptions,
  })
  const queueGauge = (name: string, help: string, value: (stats: ReturnType<WorkQueue['stats']>) => number) =>
    new Gauge({
      name,
      help,
      ...nameLabelOptions,
      collect() {
        for (const queue of queues) this.set({ name: queue.name }, value(queue.stats()))
      },
    })
  queueGauge('workqueue_depth', 'Keys waiting for a worker.', ({ depth }) => depth)
  queueGauge(
    'workqueue_unfinished_work_seconds',
    'Total age of the keys being processed.',
    (stats) => stats.unfinishedSeconds,
  )
  queueGauge(
    'workqueue_longest_running_processor_seconds',
    'Age of the key that has been processed longest.',
    ({ longestSeconds }) => longestSeconds,
  )
  const cacheGauge = (name: string, help: string, value: (cache: MeasuredCache) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['resource'],
      registers,
      collect() {
        for (const cache of caches) this.set({ resource: cache.kind.plural }, value(cache))
      },
    })
  cacheGauge(
    'stowage_watch_last_event_age_seconds',
    'Time since the last list, event or bookmark of the watch.',
    (cache) => cache.lastEventAgeMs() / 1_000,
  )
  cacheGauge('stowage_cache_objects', 'Objects in the cache.', (cache) => cache.stats().objects)
  cacheGauge('stowage_cache_relists', 'Number of lists of the cache.', (cache) => cache.stats().relists)
  cacheGauge(
    'stowage_cache_missed_changes',
    'Changes that the watch did not deliver and that a later list contained.',
    (cache) => cache.stats().foundByRelist,
  )
  const masterStatus = new Gauge({
    name: 'leader_election_master_status',
    help: '1 if this process is the leader, otherwise 0.',
    ...nameLabelOptions,
  })
  const leaderFailures = new Counter({
    name: 'stowage_leader_work_failures_total',
    help: "Failures of the leader's controllers, which are restarted with backoff after each failure.",
    ...nameLabelOptions,
  })

  const missingRights = new Gauge({
    name: 'stowage_missing_rights',
    help: '1 for each permission that this process needed and does not have. Features that need it are out of service.',
    labelNames: ['verb', 'resource'],
    registers,
  })

  return {
    queues,
    caches,
    ...(operations ? { operations } : {}),
    setMissingRight(verb, resource, isMissing) {
      if (isMissing) missingRights.set({ verb, resource }, 1)
      else missingRights.remove({ verb, resource })
    },
    requests: {
      observeRequest({ verb, resource, code, seconds }) {
        requestsTotal.inc({ method: METHODS[verb] ?? verb, code: String(code), resource })
        if (verb !== 'WATCH') requestSeconds.observe({ verb, resource }, seconds)
      },
    },
    queueObserver: (name) => ({
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      started: (seconds) => queueDuration.observe({ name }, seconds),
      finished: (seconds) => workDuration.observe({ name }, seconds),
    }),
    countLeaderWorkFailure: (name) => leaderFailures.inc({ name }),
    setLeadership: (name, isLeader) => masterStatus.set({ name }, isLeader ? 1 : 0),
  }
}

const METHODS: Readonly<Record<string, string>> = { LIST: 'GET', WATCH: 'GET' }
