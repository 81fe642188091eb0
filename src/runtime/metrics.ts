// Metrics of the runtime, under the names of client-go and controller-runtime: requests, watches, work queues, leadership.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { KubeObject } from '../api/kind.ts'
import type { RequestObserver } from '../client/http/http-client.ts'
import type { Cache } from './cache.ts'
import type { WorkQueue, WorkQueueObserver } from './work-queue.ts'

/** The part of a cache that the gauges read. */
type MeasuredCache = Pick<Cache<KubeObject>, 'kind' | 'lastEventAgeMs' | 'stats'>

export interface ClientMetrics {
  /** For httpClient. */
  readonly requests: RequestObserver
  /** For createWorkQueue and createController. */
  queueObserver(name: string): WorkQueueObserver
  /** The gauges read these queues and caches when they are scraped. */
  readonly queues: Set<Pick<WorkQueue, 'name' | 'stats'>>
  readonly caches: Set<MeasuredCache>
  leadership(name: string, isLeader: boolean): void
  /** The work done under the lease failed, and is restarted. */
  leaderWorkFailed(name: string): void
}

const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const QUEUE_SECONDS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000]

export function createClientMetrics(registry: Registry): ClientMetrics {
  const registers = [registry]
  const queues = new Set<Pick<WorkQueue, 'name' | 'stats'>>()
  const caches = new Set<MeasuredCache>()

  const requestsTotal = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by method and code; code 0: no response.',
    labelNames: ['method', 'code', 'resource'],
    registers,
  })
  const requestSeconds = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Time from a request to its response; without watches.',
    labelNames: ['verb', 'resource'],
    buckets: REQUEST_SECONDS,
    registers,
  })
  const perQueue = { labelNames: ['name'] as const, registers }
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys added.', ...perQueue })
  const retries = new Counter({ name: 'workqueue_retries_total', help: 'Keys that were retried.', ...perQueue })
  const waited = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long keys waited for a worker.',
    buckets: QUEUE_SECONDS,
    ...perQueue,
  })
  const worked = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long keys were processed.',
    buckets: QUEUE_SECONDS,
    ...perQueue,
  })
  const queueGauge = (name: string, help: string, value: (stats: ReturnType<WorkQueue['stats']>) => number) =>
    new Gauge({
      name,
      help,
      ...perQueue,
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
    'Time since the last event or bookmark of the watch.',
    (cache) => cache.lastEventAgeMs() / 1_000,
  )
  cacheGauge('stowage_cache_objects', 'Objects in the cache.', (cache) => cache.stats().objects)
  cacheGauge('stowage_cache_relists', 'How often the cache listed again.', (cache) => cache.stats().relists)
  cacheGauge(
    'stowage_cache_missed_changes',
    'Changes that only a relist revealed.',
    (cache) => cache.stats().foundByRelist,
  )
  const master = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process leads: 1 or 0.',
    ...perQueue,
  })
  const leaderFailures = new Counter({
    name: 'stowage_leader_work_failures_total',
    help: 'Failures of the work done under the lease; after each the work is restarted with a growing delay.',
    ...perQueue,
  })

  return {
    queues,
    caches,
    requests: {
      observeRequest({ verb, resource, code, seconds }) {
        requestsTotal.inc({ method: METHODS[verb] ?? verb, code: String(code), resource })
        if (verb !== 'WATCH') requestSeconds.observe({ verb, resource }, seconds)
      },
    },
    queueObserver: (name) => ({
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      started: (seconds) => waited.observe({ name }, seconds),
      finished: (seconds) => worked.observe({ name }, seconds),
    }),
    leaderWorkFailed: (name) => leaderFailures.inc({ name }),
    leadership: (name, isLeader) => master.set({ name }, isLeader ? 1 : 0),
  }
}

const METHODS: Readonly<Record<string, string>> = { LIST: 'GET', WATCH: 'GET' }
